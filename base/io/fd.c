/* All bytes to and from a descriptor: pipes take and give fewer at a time, and signals interrupt
 * both. */
#include <errno.h>
#include <unistd.h>

#include "base/io/io.h"

bool cd_fd_put(int fd, const void *p, size_t n) {
    for (const char *at = p; n;) {
        const ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

bool cd_fd_get(int fd, void *p, size_t n) {
    for (char *at = p; n;) {
        const ssize_t k = read(fd, at, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}
