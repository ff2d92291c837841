/* Of which kind logs are: the first record that can be read tells. A command that is given no model
 * chooses the default one by it. */
#include <sys/stat.h>

#include "features/task/task.h"
#include "profiler/records/records.h"

/* What a pipe has given cannot be read again. */
static bool is_stored(const char *path) {
    struct stat s;
    return !stat(path, &s) && (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode));
}

bool cd_record_first_is_gpu(const char *const *path, size_t n) {
    enum { LINES = 1000 };
    cd_record_reader *r = NULL;
    cd_record record = {0};
    cd_arena a = {0};
    bool found = false, over = false;
    for (size_t k = 0; k < n; k++) over |= !is_stored(path[k]);
    over = over || !n || cd_record_reader_open(path, n, &r, NULL) != CDMPP_OK;
    for (int k = 0; k < LINES && !found && !over; k++) {
        cd_recline line = {0};
        /* a bad line: told when all are used */
        if (cd_record_reader_next(r, &line, NULL)) continue;
        over = !line.text;
        if (!over) found = !cd_record_read(&a, line.text, line.len, &record, NULL);
    }
    const bool gpu = found && cd_target_is_gpu(record.target);
    cd_arena_free(&a);
    cd_record_reader_close(r);
    return gpu;
}
