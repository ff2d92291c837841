/* A file of records that is killed, shared, full, and read again. */
#include "check.h"
#include "tmp.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/io/io.h"
#include "profiler/records/record_log.h"

static const double cost[] = {1e-3};

static cd_record made(const char *key, int32_t factor) {
    static cd_record_step steps[4]; /* of the last four records */
    static int32_t list[4];
    static unsigned made;
    const unsigned k = made++ % 4;
    list[k] = factor;
    steps[k] = (cd_record_step){
        .kind = CD_RECORD_STEP_SP, .stage = 1, .i = {0, 64, 1}, .n_list = 1, .list = &list[k]};
    return (cd_record){.workload_key = {key, strlen(key)},
                       .target = {"llvm", 4},
                       .has_hardware = true,
                       .has_host = true,
                       .has_layout = true,
                       .has_inputs = true,
                       .n_step = 1,
                       .step = &steps[k],
                       .n_cost = 1,
                       .cost_s = cost,
                       .total_s = 1,
                       .timestamp = 7,
                       .version = {"v0.6", 4}};
}

static cd_record_log *open_ok(const char *path) {
    cd_record_log *l = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_record_log_open(path, false, &l, &err));
    return l;
}

static bool claim(cd_record_log *l, const cd_record *r, unsigned limit) {
    cd_record_id id;
    bool mine = false;
    cdmpp_err err = {0};
    assert_ok(cd_record_id_of(r, &id, &err));
    assert_ok(cd_record_log_claim(l, id, limit, &mine, &err));
    return mine;
}

static char *content(const char *path, size_t *n) {
    char *p = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_file_read(path, 0, &p, n, &err));
    return p;
}

/* What was measured does not change who a record is; what it measures does. */
TEST(test_identity) {
    cd_record_id a, b;
    cdmpp_err err = {0};
    static const double other[] = {5, 6};
    cd_record r = made("k", 2);
    assert_ok(cd_record_id_of(&r, &a, &err));
    r.cost_s = other;
    r.n_cost = 2;
    r.error_no = 4;
    r.total_s = 9;
    r.timestamp = 1;
    assert_ok(cd_record_id_of(&r, &b, &err));
    assert_memory_equal(&a, &b, sizeof a);
    r = made("k", 4);
    assert_ok(cd_record_id_of(&r, &b, &err));
    assert_memory_not_equal(&a, &b, sizeof a);
    r = made("k", 2);
    r.target = (cd_str){"c", 1};
    assert_ok(cd_record_id_of(&r, &b, &err));
    assert_memory_not_equal(&a, &b, sizeof a);
}

TEST(test_again) {
    tmp_dir d = tmp_make();
    const char *path = tmp_path(&d, "out.json");
    cdmpp_err err = {0};
    long line;
    cd_record_log *l = open_ok(path);
    for (int32_t k = 1; k <= 2000; k++) {
        const cd_record r = made("k", k);
        assert_true(claim(l, &r, 1));
        assert_false(claim(l, &r, 1));
        assert_ok(cd_record_log_add(l, &r, &line, &err));
        assert_int_equal(line, k);
    }
    assert_ok(cd_record_log_close(l, &err));
    l = open_ok(path);
    for (int32_t k = 1; k <= 2000; k++) {
        const cd_record r = made("k", k);
        assert_false(claim(l, &r, 1));
    }
    const cd_record r = made("k", 7), s = made("k", 2001);
    assert_true(claim(l, &r, 2)); /* a second round */
    assert_false(claim(l, &r, 2));
    assert_true(claim(l, &s, 2));
    assert_ok(cd_record_log_close(l, &err));
    tmp_remove(&d);
}

/* What failed is handed out again where that is asked for, once, and what was measured since then
 * is not. */
TEST(test_retry) {
    tmp_dir d = tmp_make();
    const char *path = tmp_path(&d, "out.json");
    cdmpp_err err = {0};
    cd_record good = made("k", 1), bad = made("k", 2);
    bad.error_no = 7;
    cd_record_log *l = open_ok(path);
    assert_ok(cd_record_log_add(l, &good, NULL, &err));
    assert_ok(cd_record_log_add(l, &bad, NULL, &err));
    assert_ok(cd_record_log_close(l, &err));
    l = open_ok(path);
    assert_false(claim(l, &bad, 1));
    assert_ok(cd_record_log_close(l, &err));
    assert_ok(cd_record_log_open(path, true, &l, &err));
    assert_false(claim(l, &good, 1));
    assert_true(claim(l, &bad, 1));
    assert_false(claim(l, &bad, 1));
    bad.error_no = 0;
    assert_ok(cd_record_log_add(l, &bad, NULL, &err));
    assert_ok(cd_record_log_close(l, &err));
    assert_ok(cd_record_log_open(path, true, &l, &err));
    assert_false(claim(l, &bad, 1)); /* one of its two lines is good */
    assert_ok(cd_record_log_close(l, &err));
    tmp_remove(&d);
}

/* Half a line at the end, as kill -9 or a crash of the machine leaves it, and lines that are no
 * records. */
TEST(test_half_a_line) {
    tmp_dir d = tmp_make();
    const char *path = tmp_path(&d, "out.json");
    cdmpp_err err = {0};
    size_t n, m;
    const cd_record r = made("k", 1), s = made("k", 2);
    cd_record_log *l = open_ok(path);
    assert_ok(cd_record_log_add(l, &r, NULL, &err));
    assert_ok(cd_record_log_close(l, &err));
    char *whole = content(path, &n);
    const int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "# mine\nnonsense\n{\"i\": [[\"k", 26), 26);
    close(fd);
    l = open_ok(path);
    assert_false(claim(l, &r, 1));
    assert_true(claim(l, &s, 1));
    assert_ok(cd_record_log_add(l, &s, NULL, &err));
    assert_ok(cd_record_log_close(l, &err));
    char *now = content(path, &m);
    assert_int_equal(m, 2 * n + 16);
    assert_memory_equal(now, whole, n);
    assert_memory_equal(now + n, "# mine\nnonsense\n{\"i\"", 20);
    cd_mem_free(whole);
    cd_mem_free(now);
    tmp_remove(&d);
}

TEST(test_two_writers) {
    tmp_dir d = tmp_make();
    const char *path = tmp_path(&d, "out.json");
    cdmpp_err err = {0};
    cd_record_log *l = open_ok(path), *m = NULL;
    assert_status(cd_record_log_open(path, false, &m, &err), CDMPP_EIO);
    assert_non_null(strstr(err.msg, "another run"));
    assert_ok(cd_record_log_close(l, &err));
    l = open_ok(path);
    assert_ok(cd_record_log_close(l, &err));
    tmp_remove(&d);
}

/* A disk that is full in the middle of a line: the line is not there, the others are. */
TEST(test_full) {
    tmp_dir d = tmp_make();
    const char *path = tmp_path(&d, "out.json");
    cdmpp_err err = {0};
    size_t n;
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    cd_record_log *l = open_ok(path);
    const struct rlimit small = {1000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cdmpp_status st = CDMPP_OK;
    int32_t k = 1;
    for (; !st && k < 100; k++) {
        const cd_record r = made("k", k);
        st = cd_record_log_add(l, &r, NULL, &err);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, CDMPP_EIO);
    assert_non_null(strstr(err.path, "out.json"));
    assert_ok(cd_record_log_close(l, &err));
    char *p = content(path, &n);
    assert_true(n > 0 && n <= 1000 && p[n - 1] == '\n');
    long lines = 0;
    for (size_t i = 0; i < n; i++) lines += p[i] == '\n';
    assert_int_equal(lines, k - 2);
    cd_mem_free(p);
    tmp_remove(&d);
}

/* Pipes and devices are written, not locked and not read. */
TEST(test_device) {
    cdmpp_err err = {0};
    const cd_record r = made("k", 1);
    cd_record_log *l = open_ok("/dev/null");
    assert_ok(cd_record_log_add(l, &r, NULL, &err));
    assert_ok(cd_record_log_close(l, &err));
    l = open_ok("/dev/full");
    assert_status(cd_record_log_add(l, &r, NULL, &err), CDMPP_EIO);
    (void)cd_record_log_close(l, NULL);
    assert_status(cd_record_log_open("/nosuch/folder/x", false, &l, &err), CDMPP_EIO);
}

TESTS(NULL, NULL, test_identity, test_again, test_retry, test_half_a_line, test_two_writers,
      test_full, test_device)
