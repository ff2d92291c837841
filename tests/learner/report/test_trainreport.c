/* The three forms of a report: well-formed, complete, the same bytes twice. */
#include "learner/report/report.h"
#include "check.h"
#include "fault.h"
#include "made_report.h"

#include "base/io/io.h"
#include "base/text/text.h"

typedef cdmpp_status put(cd_buf *out, const cd_report *r, cdmpp_err *err);
static put *const form[] = {cd_report_write_html, cd_report_write_json, cd_report_write_csv};

/* Tags nest and end; fails with the place. Void elements of HTML need no end. */
static void check_nesting(const char *s) {
    static const char *const empty[] = {"!doctype", "meta", "link", "br"};
    char name[64][16];
    int depth = 0;
    for (const char *p = s; (p = strchr(p, '<')); p++) {
        const bool close = p[1] == '/';
        const char *at = p + 1 + close, *end = strchr(p, '>');
        char tag[16];
        assert_non_null(end);
        assert_null(memchr(p + 1, '<', (size_t)(end - p - 1)));
        const size_t n = strcspn(at, " />");
        if (n >= sizeof tag || depth >= 64) fail_msg("at %.40s", p);
        memcpy(tag, at, n);
        tag[n] = '\0';
        bool alone = end[-1] == '/';
        for (size_t k = 0; k < sizeof empty / sizeof *empty; k++) alone |= !strcmp(tag, empty[k]);
        if (close && (!depth || strcmp(name[--depth], tag) != 0))
            fail_msg("expected </%s> at %.60s", name[depth], p);
        if (!close && !alone) memcpy(name[depth++], tag, sizeof tag);
        p = end;
    }
    assert_int_equal(depth, 0);
}

/* Every id once. */
static void check_ids(const char *s) {
    for (const char *p = s; (p = strstr(p, " id=\"")); p++) {
        char id[64];
        const size_t n = strcspn(p + 5, "\"");
        assert_true(n + 7 < sizeof id);
        memcpy(id, p, n + 6);
        id[n + 6] = '\0';
        if (strstr(p + 1, id)) fail_msg("twice: %s", id);
    }
}

static const char *const plots[] = {"plot-scatter-test",  "plot-scatter-validation",
                                    "plot-scatter-train", "plot-cdf",
                                    "plot-decade",        "plot-task",
                                    "plot-coverage",      "plot-uncertainty",
                                    "plot-curves"};
static const char *const tables[] = {"table-parts",   "table-task-worst", "table-task-best",
                                     "table-network", "table-decade",     "table-device",
                                     "table-range"};

static bool has_id(const char *html, const char *id) {
    char text[64];
    snprintf(text, sizeof text, " id=\"%s\"", id);
    return strstr(html, text) != NULL;
}

static void check_page(const cd_buf *b) {
    assert_int_equal(strlen(b->p), b->n);
    check_nesting(b->p);
    check_ids(b->p);
    assert_null(strstr(b->p, "nan"));
    assert_null(strstr(b->p, "inf"));
    assert_null(strstr(b->p, "http")); /* nothing from outside */
    assert_null(strstr(b->p, "src="));
    assert_null(strstr(b->p, "url("));
}

TEST(page) {
    cdmpp_err err = {0};
    made_report m;
    cd_buf b = {0};
    made_report_new(&m, 20000, 300, 3, 7);
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    check_page(&b);
    for (size_t k = 0; k < sizeof plots / sizeof *plots; k++)
        if (!has_id(b.p, plots[k])) fail_msg("no %s", plots[k]);
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        if (!has_id(b.p, tables[k])) fail_msg("no %s", tables[k]);
    assert_non_null(strstr(b.p, "made &lt;up&gt; &amp; &quot;quoted&quot;"));
    assert_non_null(strstr(b.p, "&lt;net&gt; &quot;0&quot;"));
    assert_non_null(strstr(b.p, "cdmpp-train &#39;a b&#39;.yaml"));
    assert_non_null(strstr(b.p, "of tasks never seen in training"));
    cd_buf_free(&b);
    made_report_free(&m);
}

/* Whatever may be missing, one at a time and all together. */
TEST(missing) {
    cdmpp_err err = {0};
    for (int k = 0; k < 12; k++) {
        made_report m;
        made_report_new(&m, k == 0 ? 0 : k == 1 ? 1 : k == 2 ? 12 : 600, 9, 2, k == 3 ? 0 : 2);
        for (int p = 0; p < CD_SPLIT_N_PART; p++) {
            cd_report_part *t = &m.r.part[p];
            if (k == 4 || k > 9) t->low_s = t->high_s = NULL;
            if (k == 5 || k > 9) t->rel_std = NULL;
            if (k == 6 || k > 9) t->out_of_range = NULL;
            if ((k == 7 && p == CD_SPLIT_PART_TEST) || (k == 8 && p != CD_SPLIT_PART_TRAIN) ||
                (k == 11 && p == CD_SPLIT_PART_VALID))
                t->n = 0;
        }
        if (k == 9 || k == 11) m.r.n_curve = 0;
        if (k == 10) m.series[0].n = 1, m.series[1].n = 0, m.curve[500] = NAN;
        for (int f = 0; f < 3; f++) {
            cd_buf b = {0};
            assert_ok(form[f](&b, &m.r, &err));
            if (f == 0) check_page(&b);
            if (f == 0 && k > 9) assert_true(has_id(b.p, "no-uncertainty"));
            if (f == 0 && (k == 9 || k == 11)) assert_true(has_id(b.p, "no-curves"));
            cd_buf_free(&b);
        }
        made_report_free(&m);
    }
}

TEST(same_bytes) {
    cdmpp_err err = {0};
    for (int f = 0; f < 3; f++) {
        cd_buf b[2] = {{0}, {0}};
        for (int k = 0; k < 2; k++) {
            made_report m;
            made_report_new(&m, 3000, 50, 2, 3);
            assert_ok(form[f](&b[k], &m.r, &err));
            made_report_free(&m);
        }
        assert_int_equal(b[0].n, b[1].n);
        assert_memory_equal(b[0].p, b[1].p, b[0].n);
        cd_buf_free(&b[0]);
        cd_buf_free(&b[1]);
    }
}

/* The whole page but for its style. After a change on purpose: look at the page, then take over the
 * digest. */
TEST(page_stays) {
    cdmpp_err err = {0};
    made_report m;
    cd_buf b = {0};
    char md5[33];
    made_report_new(&m, 3000, 50, 2, 3);
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    const char *body = strstr(b.p, "<body");
    assert_non_null(body);
    cd_md5_hex(body, (size_t)(b.p + b.n - body), md5);
    assert_string_equal(md5, "71e05eb2bc7fe21f4ffb8bea5741c555");
    cd_buf_free(&b);
    made_report_free(&m);
}

/* All forms, each with something missing: digests of all digests. As above. */
TEST(forms_stay) {
    static const char *const want[] = {"0e6f05f7fc7ea7b211f2d5af0487c196",
                                       "7a59d16ed2c1d3a331a0083689b26efc",
                                       "6cd03d43b506fa9d7ca18ac34e775667"};
    cdmpp_err err = {0};
    for (int f = 0; f < 3; f++) {
        cd_buf all = {0};
        char md5[33];
        for (int k = 0; k < 8; k++) {
            made_report m;
            cd_buf b = {0};
            made_report_new(&m, k == 1 ? 12 : 600, 9, 2, k == 2 ? 0 : 2);
            for (int p = 0; p < CD_SPLIT_N_PART; p++) {
                cd_report_part *t = &m.r.part[p];
                if (k == 3) t->low_s = t->high_s = NULL;
                if (k == 4) t->rel_std = NULL;
                if (k == 5) t->out_of_range = NULL;
                if (k == 6 && p == CD_SPLIT_PART_TEST) t->n = 0;
            }
            if (k == 7) m.r.n_curve = 0;
            assert_ok(form[f](&b, &m.r, &err));
            const char *body = f ? b.p : strstr(b.p, "<body"); /* the style is not of interest */
            assert_non_null(body);
            cd_md5_hex(body, (size_t)(b.p + b.n - body), md5);
            cd_buf_puts(&all, md5);
            cd_buf_free(&b);
            made_report_free(&m);
        }
        cd_md5_hex(all.p, all.n, md5);
        assert_string_equal(md5, want[f]);
        cd_buf_free(&all);
    }
}

/* 150 000 programs of 2300 tasks: the page does not grow with the programs. */
TEST(large) {
    cdmpp_err err = {0};
    made_report m;
    cd_buf b = {0};
#ifdef __SANITIZE_ADDRESS__
    made_report_new(&m, 15000, 2300, 6, 120);
#else
    made_report_new(&m, 150000, 2300, 6, 120);
#endif
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    check_nesting(b.p);
    if (b.n > 1000000) fail_msg("%zu bytes", b.n);
    cd_buf_free(&b);
    made_report_free(&m);
}

static const cd_json *at(const cd_json *j, const char *key) {
    const cd_json *v = cd_json_get(j, key);
    if (!v) fail_msg("no %s", key);
    return v;
}

TEST(json) {
    cdmpp_err err = {0};
    made_report m;
    cd_arena a = {0};
    cd_buf b = {0};
    const cd_json *j = NULL;
    made_report_new(&m, 2000, 30, 2, 3);
    m.curve[7] = NAN;
    assert_ok(cd_report_write_json(&b, &m.r, &err));
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    assert_true(cd_str_is(at(j, "schema")->u.s, "cdmpp.trainreport/1"));
    const cd_json *t = at(at(j, "parts"), "test");
    assert_int_equal(at(at(t, "all"), "n")->u.i, 400);
    assert_close(at(at(t, "all"), "mape")->u.f, m.r.part[CD_SPLIT_PART_TEST].metrics.mape, 1e-5, 0);
    assert_int_equal(at(at(t, "cdf"), "share")->n, 161);
    assert_int_equal(at(at(t, "calibration"), "observed")->n, 20);
    assert_int_equal(at(t, "by_network")->n, 3);
    assert_true(at(t, "by_task")->n > 5);
    assert_int_equal(at(at(j, "curves"), "members")->n, 3);
    cd_arena_free(&a);
    cd_buf_free(&b);
    made_report_free(&m);
}

/* Read back: as many fields a line as the header, quotes undone. */
TEST(csv) {
    cdmpp_err err = {0};
    made_report m;
    cd_buf b = {0};
    made_report_new(&m, 200, 5, 2, 0);
    strcpy(m.name[5], "a,\"b\"");
    assert_ok(cd_report_write_csv(&b, &m.r, &err));
    size_t line = 0, field = 0;
    bool quoted = false;
    for (const char *p = b.p; *p; p++) {
        if (*p == '"') quoted = !quoted;
        else if (*p == ',' && !quoted) field++;
        else if (*p == '\n' && !quoted) {
            assert_int_equal(field, 12);
            field = 0, line++;
        }
    }
    assert_int_equal(line, 201);
    assert_non_null(strstr(b.p, "test,\"[\"\""));
    assert_non_null(strstr(b.p, "]\",\"a,\"\"b\"\"\","));
    cd_buf_free(&b);
    made_report_free(&m);
}

static void without_memory(void **st) {
    (void)st;
    for (int k = 0; k < 3; k++) {
        made_report m;
        made_report_new(&m, 300, 5, 2, 2);
        FAULT_SWEEP(f, 1) {
            cd_buf b = {0};
            f.st = form[k](&b, &m.r, &f.err);
            cd_buf_free(&b);
        }
        made_report_free(&m);
    }
}

/* For scripts/check_report.sh: pages to open in a browser, where CDMPP_PAGES names a folder. */
TEST(pages_to_look_at) {
    static const struct {
        const char *name;
        size_t n, n_task, n_device, n_network;
    } page[] = {{"made-many", 150000, 2300, 6, 120},
                {"made-few", 60, 3, 1, 0},
                {"made-all", 7500, 360, 3, 17}};
    const char *dir = getenv("CDMPP_PAGES");
    for (size_t k = 0; dir && k < sizeof page / sizeof *page; k++) {
        cdmpp_err err = {0};
        made_report m;
        cd_buf b = {0};
        char path[512];
        made_report_new(&m, page[k].n, page[k].n_task, page[k].n_device, page[k].n_network);
        assert_ok(cd_report_write_html(&b, &m.r, &err));
        snprintf(path, sizeof path, "%s/%s.html", dir, page[k].name);
        assert_ok(cd_file_write(path, b.p, b.n, &err));
        cd_buf_free(&b);
        made_report_free(&m);
    }
}

TESTS(NULL, NULL, page, missing, same_bytes, page_stays, forms_stay, large, json, csv,
      pages_to_look_at, without_memory)
