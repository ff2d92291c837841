/* Records of files, folders and packed files as one stream. */
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <sys/stat.h>

#include "profiler/records/record_reader.h"

static cd_record_reader *open_ok(const char *const *path, size_t n) {
    cd_record_reader *r = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_record_reader_open(path, n, &r, &err));
    return r;
}

static void assert_next(cd_record_reader *r, const char *path, long number, const char *text) {
    cd_recline l;
    cdmpp_err err = {0};
    assert_ok(cd_record_reader_next(r, &l, &err));
    if (!text) {
        assert_null(l.text);
        return;
    }
    assert_string_equal(l.path, path);
    assert_int_equal(l.number, number);
    assert_string_equal(l.text, text);
    assert_int_equal(l.len, strlen(text));
}

TEST(test_order) {
    tmp_dir d = tmp_make();
    char folder[128], a[160], b[160], one[160];
    snprintf(folder, sizeof folder, "%s/f", d.path);
    snprintf(a, sizeof a, "%s/a.json", folder);
    snprintf(b, sizeof b, "%s/b.log", folder);
    mkdir(folder, 0700);
    tmp_put(&d, "f/b.log", "{3}\n", 4);
    tmp_put(&d, "f/a.json", "# c\n\n{2}", 8);
    tmp_put(&d, "f/c.txt", "{4}\n", 4);
    snprintf(one, sizeof one, "%s", tmp_put(&d, "one", "{1}\r\n", 5));
    const char *const path[] = {one, folder, one};
    cd_record_reader *r = open_ok(path, 3);
    assert_next(r, one, 1, "{1}");
    assert_next(r, a, 3, "{2}");
    assert_next(r, b, 1, "{3}");
    assert_next(r, one, 1, "{1}");
    assert_next(r, NULL, 0, NULL);
    assert_next(r, NULL, 0, NULL);
    cd_record_reader_close(r);
    tmp_remove(&d);
}

TEST(test_missing) {
    tmp_dir d = tmp_make();
    cd_record_reader *r = NULL;
    cdmpp_err err = {0};
    const char *const empty[] = {d.path}, *const none[] = {tmp_path(&d, "none")};
    assert_status(cd_record_reader_open(empty, 1, &r, &err), CDMPP_EIO);
    assert_status(cd_record_reader_open(none, 1, &r, &err), CDMPP_EIO);
    tmp_remove(&d);
}

/* A file that is damaged behind its second line: the next file follows. */
TEST(test_damaged) {
    tmp_dir d = tmp_make();
    char bad[128], good[128];
    static const unsigned char xz[] = {0xfd, '7',  'z',  'X',  'Z',  0, 0,
                                       4,    0xe6, 0xd6, 0xb4, 0x46, 1};
    snprintf(bad, sizeof bad, "%s", tmp_put(&d, "bad.json.xz", xz, sizeof xz));
    snprintf(good, sizeof good, "%s", tmp_put(&d, "good.json", "{1}\n", 4));
    const char *const path[] = {bad, good};
    cd_record_reader *r = open_ok(path, 2);
    cd_recline l;
    cdmpp_err err = {0};
    assert_status(cd_record_reader_next(r, &l, &err), CDMPP_EPARSE);
    assert_non_null(strstr(err.path, "bad.json.xz"));
    assert_next(r, good, 1, "{1}");
    assert_next(r, NULL, 0, NULL);
    cd_record_reader_close(r);
    tmp_remove(&d);
}

/* Lines that are no records are passed over; a folder and several files are one log. */
TEST(test_first_is_gpu) {
#define LINE(target)                                                                               \
    "{\"i\": [[\"[\\\"k\\\"]\", \"" target "\", [1, 16, 64, 0, 0, 0, 0, 0], \"\", 0, []], [[], "   \
    "[]]], \"r\": [[1], 0, 1, 1], \"v\": \"v0.6\"}\n"
    tmp_dir d = tmp_make();
    char folder[128], gpu[160], cpu[160], bad[160];
    snprintf(folder, sizeof folder, "%s/f", d.path);
    mkdir(folder, 0700);
    snprintf(gpu, sizeof gpu, "%s",
             tmp_put(&d, "f/gpu.json", "# c\n{1}\n" LINE("cuda -model=a100") LINE("llvm"),
                     strlen("# c\n{1}\n" LINE("cuda -model=a100") LINE("llvm"))));
    snprintf(cpu, sizeof cpu, "%s",
             tmp_put(&d, "cpu.json", LINE("llvm") LINE("cuda"), strlen(LINE("llvm") LINE("cuda"))));
    snprintf(bad, sizeof bad, "%s", tmp_put(&d, "bad.json", "{1}\n", 4));
    const char *const first[] = {bad, gpu, cpu};
    const char *const second[] = {bad, cpu, gpu};
    const char *const dir[] = {folder};
    const char *const none[] = {gpu, "/nowhere/x.json"};
    const char *const pipe[] = {gpu, "/dev/null"};
    assert_true(cd_record_first_is_gpu(first, 3));
    assert_false(cd_record_first_is_gpu(second, 3));
    assert_true(cd_record_first_is_gpu(dir, 1));
    assert_false(cd_record_first_is_gpu(none, 2));
    assert_false(cd_record_first_is_gpu(pipe, 2));
    assert_false(cd_record_first_is_gpu(NULL, 0));
    FAULT_SWEEP(f, 2) f.st = cd_record_first_is_gpu(first, 3) ? CDMPP_OK : CDMPP_ENOMEM;
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_order, test_missing, test_damaged, test_first_is_gpu)
