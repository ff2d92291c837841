/* Networks at an address: fetched once by curl, or wget where there is no curl, and kept in the
 * user's cache. An archive has one ONNX file among others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "profiler/host/host.h"
#include "profiler/network/source/source.h"

#define LOCAL   "file://"
#define LIMIT_S 1800 /* of one transfer */
enum { PATH = 1024 };

bool cd_network_source_is_address(const char *name) {
    return !strncmp(name, "http://", 7) || !strncmp(name, "https://", 8) ||
           !strncmp(name, LOCAL, sizeof LOCAL - 1);
}

/* Length of an address without "?..." and "#...". */
static size_t plain_length(const char *address) { return strcspn(address, "?#"); }

static bool ends_in(const char *address, const char *end) {
    const size_t n = plain_length(address), m = strlen(end);
    return n > m && !strncmp(address + n - m, end, m);
}

static bool is_archive(const char *address) {
    return ends_in(address, ".tar.gz") || ends_in(address, ".tgz");
}

/* The folder and those above it that are missing. */
static cdmpp_status make_folders(char *path, cdmpp_err *err) {
    for (char *s = path + 1; *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        const cdmpp_status st = cd_file_make_folder(path, err);
        *s = '/';
        if (st) return st;
    }
    return cd_file_make_folder(path, err);
}

/* The last name of the address behind a digest of all of it: networks of one name from two places
 * are two files. */
static cdmpp_status place_of(const char *address, char *to, size_t n, cdmpp_err *err) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *last = address;
    const bool cache = xdg && xdg[0] == '/';
    char hex[65], dir[PATH];
    cd_sha256 s;
    size_t end = plain_length(address);
    for (size_t k = 0; k < end; k++)
        if (address[k] == '/') last = address + k + 1;
    end -= (size_t)(last - address);
    if (ends_in(address, ".onnx")) end -= 5;
    cd_sha256_init(&s);
    cd_sha256_add(&s, address, strlen(address));
    cd_sha256_hex(&s, hex);
    if (!cache && !(home && home[0]))
        return CD_FAIL(err, EIO,
                       "nowhere to keep what is fetched: neither XDG_CACHE_HOME nor HOME is set");
    const int m = snprintf(dir, sizeof dir, "%s%s/cdmpp/networks/%.16s", cache ? xdg : home,
                           cache ? "" : "/.cache", hex);
    if (m < 0 || (size_t)m >= sizeof dir ||
        (size_t)snprintf(to, n, "%s/%.*s.onnx", dir, (int)(end < 80 ? end : 80), last) >= n)
        return CD_FAIL(err, EIO, "%s: the path in the cache is too long", address);
    return make_folders(dir, err);
}

/* Runs it; *missing: there is no such program, and nothing was done. */
static cdmpp_status run(const char *const *argv, const char *address, bool *missing,
                        cdmpp_err *err) {
    char say[64];
    cd_subprocess j = {.argv = argv, .limit_s = LIMIT_S};
    cdmpp_status st = cd_subprocess_run(&j, 1, 1, NULL, err);
    *missing = !st && j.end == CD_SPAWN_NOT_BEGUN && j.code == ENOENT;
    if (!st && !*missing && (j.end != CD_SPAWN_EXITED || j.code != 0)) {
        const size_t n = j.text.p ? strcspn(j.text.p, "\n") : 0;
        st = CD_FAIL(err, EIO, "%.200s: %s: %s%s%.*s", address, argv[0],
                     cd_subprocess_say(&j, say, sizeof say), n ? ": " : "",
                     (int)(n < 160 ? n : 160), n ? j.text.p : "");
    }
    cd_buf_free(&j.text);
    return st;
}

static cdmpp_status get(const char *address, const char *to, cdmpp_err *err) {
    const char *const curl[] = {"curl", "-fsSL", "--proto", "=http,https", "-o", to, address, NULL};
    const char *const wget[] = {"wget", "-nv", "-O", to, address, NULL};
    bool missing;
    CD_TRY(run(curl, address, &missing, err));
    if (missing) CD_TRY(run(wget, address, &missing, err));
    return missing ? CD_FAIL(err, EBACKEND,
                             "%s: it takes curl or wget to fetch it, and neither is here", address)
                   : CDMPP_OK;
}

/* The one ONNX file of an archive. */
static cdmpp_status unpack(const char *address, const char *archive, const char *to,
                           cdmpp_err *err) {
    static const char script[] =
        "n=$(tar -tzf \"$1\" | grep -c '[.]onnx$'); [ \"$n\" = 1 ] || { echo \"$n files *.onnx in "
        "the archive, expected one\"; exit 1; }; "
        "tar -xzOf \"$1\" --wildcards --no-anchored '*.onnx' >\"$2\"";
    const char *const argv[] = {"sh", "-c", script, "sh", archive, to, NULL};
    bool missing;
    CD_TRY(run(argv, address, &missing, err));
    return missing ? CD_FAIL(err, EBACKEND, "sh is not here") : CDMPP_OK;
}

/* What is behind the address at `path`, whole or not at all. */
static cdmpp_status bring(const char *address, const char *path, cdmpp_err *err) {
    const bool archive = is_archive(address), local = !strncmp(address, LOCAL, sizeof LOCAL - 1);
    char *got = NULL, *made = NULL;
    cdmpp_status st = cd_file_temp(path, &made, err);
    if (!st && archive && !local) st = cd_file_temp(path, &got, err);
    if (!st && !local) st = get(address, archive ? got : made, err);
    if (!st && archive) st = unpack(address, local ? address + sizeof LOCAL - 1 : got, made, err);
    cd_file_discard(got);
    if (!st) return cd_file_publish(made, path, err);
    cd_file_discard(made);
    return st;
}

cdmpp_status cd_network_source_fetch(cd_arena *a, const char *address, const char **path,
                                     cdmpp_err *err) {
    char to[PATH];
    if (!strncmp(address, LOCAL, sizeof LOCAL - 1) && !is_archive(address))
        return (*path = address + sizeof LOCAL - 1, CDMPP_OK);
    CD_TRY(place_of(address, to, sizeof to, err));
    if (access(to, R_OK) != 0) CD_TRY(bring(address, to, err));
    *path = cd_str_dup(a, (cd_str){to, strlen(to)});
    return *path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "path");
}

cdmpp_status cd_network_source_onnx(const char *name, const cd_onnx_options *o, cd_graph **g,
                                    const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    cd_arena a = {0};
    const char *path = name;
    cdmpp_status st = cd_network_source_is_address(name)
                          ? cd_network_source_fetch(&a, name, &path, err)
                          : CDMPP_OK;
    if (!st) st = cd_network_source_foreign(path, err);
    if (!st) st = cd_onnx_read(path, o, g, miss, n_miss, err);
    cd_arena_free(&a);
    return st;
}
