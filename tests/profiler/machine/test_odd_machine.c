/* Odd machines, links and pairs. */
#include "odd.h"
#include "profiler/machine/corun_table.h"
#include "profiler/machine/link_pairs.h"
#include "profiler/machine/machine.h"
#include "tmp.h"

static tmp_dir dir;
static int set_up(void **state) { return (void)state, dir = tmp_make(), 0; }
static int tear_down(void **state) { return (void)state, tmp_remove(&dir), 0; }

static cdmpp_status machine(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_machine m;
    (void)ctx;
    cd_machine_init(&m);
    const cdmpp_status st = cd_machine_parse(&m, text, n, err);
    cd_machine_free(&m);
    return st;
}

/* What machines say of contention; a file that says nothing of it is no answer. */
TEST(contention) {
    static const char with[] =
        "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"cpu\", \"core\": 0, "
        "\"launch_s\": 0, \"sync_s\": 0}], \"links\": [],"
        " \"contention\": {\"peak_bytes_per_s\": 1e10, \"beside\": 1.02, \"turn\": 2, \"pairs\": "
        "21, \"error\": 0.05}}",
                      without[] =
                          "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": "
                          "\"cpu\", \"core\": 0, \"launch_s\": 0, \"sync_s\": 0}], \"links\": []}";
    cd_contention c;
    cdmpp_err err = {0};
    assert_ok(cd_machine_contention(tmp_put(&dir, "with.json", with, sizeof with - 1), &c, &err));
    assert_true(c.beside == 1.02 && c.turn == 2);
    assert_status(
        cd_machine_contention(tmp_put(&dir, "without.json", without, sizeof without - 1), &c, &err),
        CDMPP_ENODATA);
    assert_string_equal(err.msg, "nothing about contention");
    assert_non_null(strstr(err.path, "without.json"));
    assert_status(cd_machine_contention(tmp_path(&dir, "none.json"), &c, &err), CDMPP_EIO);
    assert_status(cd_machine_contention(tmp_put(&dir, "bad.json", "{}", 2), &c, NULL),
                  CDMPP_ESCHEMA);
    cd_machine m;
    cd_machine_init(&m);
    assert_status(cd_machine_read_or_links(&m, tmp_path(&dir, "bad.json"), NULL), CDMPP_ESCHEMA);
    cd_machine_free(&m);
}

static cdmpp_status links(const char *path, cdmpp_err *err) {
    cd_machine m;
    cd_machine_init(&m);
    const cdmpp_status st = cd_machine_read_or_links(&m, path, err);
    cd_machine_free(&m);
    return st;
}

static cdmpp_status pairs(const char *path, cdmpp_err *err) {
    cd_corun_table t = {0};
    const cdmpp_status st = cd_corun_table_read(path, &t, err);
    cd_corun_table_free(&t);
    return st;
}

static cdmpp_status copies(const char *path, cdmpp_err *err) {
    cd_link_table l = {0};
    cd_link_error e;
    const cdmpp_status st = cd_link_pairs_fit(path, "cpu", "gpu", "pairs", &l, &e, err);
    cd_link_table_free(&l);
    return st;
}

TEST(machines) { odd_all_of_seeds("tests/fuzz/seeds/machine", 2000, machine, NULL); }

TEST(tables_of_links) {
    odd_all_of_file(
        tmp_path(&dir, "links.json"),
        "{\"cdmpp_links\": 1, \"links\": [{\"from\": \"cpu\", \"to\": \"gpu\", \"how\": "
        "\"pinned\", \"n\": 12, \"noise\": 0.01, "
        "\"pieces\": [[0, 1e-5, 1e-10], [65536, 1.65536e-5, 2e-10]]}, {\"from\": \"gpu\", \"to\": "
        "\"cpu\", \"how\": \"\", \"n\": 0, \"noise\": 0, \"pieces\": [[0, 1e-5, 1e-10]]}]}",
        links);
}

TEST(tables_of_pairs) {
    odd_all_of_file(tmp_path(&dir, "pairs.csv"),
                    "first,second,sharing,first_solo_s,second_solo_s,first_slowdown,second_"
                    "slowdown,first_bytes,second_bytes,error_no\n"
                    "a,b,shared,1,2,2,3,5,6,0\na,b,disjoint,1,2,1.1,1.2,5,6,0\na,a,disjoint,1,1,1."
                    "3,1.2,5,5,0\n",
                    pairs);
    odd_all_of_file(tmp_path(&dir, "copies.csv"),
                    "bytes,seconds\n1024,1e-5\n65536,2e-5\n1048576,1e-4\n16777216,1.5e-3\n",
                    copies);
}

TESTS(set_up, tear_down, contention, machines, tables_of_links, tables_of_pairs)
