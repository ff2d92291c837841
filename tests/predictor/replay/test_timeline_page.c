/* JSON within a page: texts that end no script, whole nanoseconds, queues of a replay; and the
 * page's pieces in their order. */
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "predictor/replay/replay_internal.h"
#include "tmp.h"

static void is(cd_buf *b, const char *want) {
    assert_string_equal(b->p, want);
    cd_buf_clear(b);
}

static void test_values(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_timeline_page_text(&b, "a</script>\"<b>");
    is(&b, "\"a\\u003c/script>\\\"\\u003cb>\"");
    cd_timeline_page_text(&b, "<");
    is(&b, "\"\\u003c\"");
    cd_timeline_page_text(&b, NULL);
    is(&b, "\"\"");
    static const struct {
        double s;
        const char *want;
    } ns[] = {{0, "0"},
              {1.4e-9, "1"},
              {1.6e-9, "2"},
              {0.25, "250000000"},
              {-1e-9, "null"},
              {4e9, "null"},
              {3e9, "3000000000000000000"},
              {NAN, "null"},
              {INFINITY, "null"}};
    for (size_t k = 0; k < sizeof ns / sizeof *ns; k++) {
        cd_timeline_page_ns(&b, ns[k].s);
        is(&b, ns[k].want);
    }
    cd_timeline_page_real(&b, "key", 0.5);
    is(&b, ",\"key\":0.5");
    cd_timeline_page_real(&b, "key", NAN);
    is(&b, ",\"key\":null");
    cd_buf_free(&b);
}

static void test_queues(void **state) {
    static const cd_replay_device device[] = {
        {.name = "a<", .workers = 2, .gap_s = 0.5, .issue_s = 0.25},
        {.name = "b", .workers = 3, .gap_s = 0.125, .issue_s = 0}};
    static const cd_replay_link link[] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
    static cd_replay_copy copy[] = {
        {.op = 7, .link = 1, .ready_s = 9, .start_s = 1e-9, .end_s = 2e-9},
        {.op = 8, .link = 0, .ready_s = 9, .start_s = 3e-9, .end_s = 5e-9}};
    const cd_replay_net net = {.n_device = 2, .device = device, .n_link = 2, .link = link};
    const cd_replay r = {.n_copy = 2, .copy = copy};
    cd_buf b = {0};
    (void)state;
    cd_timeline_page_queues(&b, &net, &r);
    is(&b, ",\"lanes\":[{\"name\":\"a\\u003c\",\"workers\":2,\"gap\":0.5,\"issue\":0.25},{\"name\":"
           "\"b\",\"workers\":3,\"gap\":0.125,\"issue\":0}],"
           "\"links\":[{\"name\":\"a\\u003c > b\",\"to\":1},{\"name\":\"b > "
           "a\\u003c\",\"to\":0}],\"copies\":[[7,1,1,2],[8,0,3,5]]");
    cd_timeline_page_queues(&b, &(cd_replay_net){0}, &(cd_replay){0});
    is(&b, ",\"lanes\":[],\"links\":[],\"copies\":[]");
    cd_buf_free(&b);
}

static void test_pieces_in_order(void **state) {
    static const char *const body[] = {"<p>one</p>", "<p>two</p>", NULL};
    static const char *const script[] = {"/*three*/", NULL};
    static const char *const drawing[] = {"/*four*/", "/*five*/", NULL};
    static const char *const order[] = {
        "<!doctype html>",
        "<title>mine</title>",
        "<style>",
        "</style>",
        "<p>one</p><p>two</p>",
        "<script type=\"application/json\" id=\"data\">{\"x\":1}</script>",
        "/*three*/",
        "/*four*//*five*/</script>",
        "</html>"};
    tmp_dir dir = tmp_make();
    cd_buf data = {0};
    cdmpp_err err = {0};
    char path[256], *text, *at;
    size_t n;
    (void)state;
    cd_buf_puts(&data, "{\"x\":1}");
    cd_timeline_page_parts p = {
        .title = "mine", .body = body, .script = script, .drawing = drawing, .data = &data};
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "p.html"));
    assert_ok(cd_timeline_page_write(path, &p, &err));
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    at = text;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        at = strstr(at, order[k]);
        if (!at) fail_msg("no %s, or out of order", order[k]);
    }
    cd_mem_free(text);
    data.oom = true; /* half a page is none */
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "q.html"));
    assert_status(cd_timeline_page_write(path, &p, &err), CDMPP_ENOMEM);
    assert_int_equal(access(path, F_OK), -1);
    data.oom = false;
    assert_status(cd_timeline_page_write("/nowhere/p.html", &p, &err), CDMPP_EIO);
    cd_buf_free(&data);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, test_values, test_queues, test_pieces_in_order)
