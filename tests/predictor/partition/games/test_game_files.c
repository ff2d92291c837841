/* Games and packings as files, and what is printed of them: numbers by hand. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "fault.h"
#include "predictor/partition/games/cotune.h"
#include "predictor/partition/games/game.h"
#include "predictor/partition/games/pack.h"
#include "tmp.h"

static cdmpp_err err;
static tmp_dir dir;

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status read_game(const char *text, cd_game_file *g) {
    *g = (cd_game_file){0};
    memset(&err, 0, sizeof err);
    return cd_game_read(tmp_put(&dir, "game", text, strlen(text)), g, &err);
}

/* Two operators; the second cannot be on the gpu. */
static void is_the_game(const cd_game_file *g) {
    assert_true(g->g.n_op == 2 && g->g.n_device == 2);
    assert_string_equal(g->device[0], "cpu");
    assert_string_equal(g->device[1], "gpu");
    assert_string_equal(g->name[0], "a");
    assert_string_equal(g->name[1], "b");
    assert_true(g->seconds[0] == 4 && g->seconds[1] == 1 && g->seconds[2] == 3 &&
                isinf(g->seconds[3]));
    assert_true(g->transfer[0] == 0 && g->transfer[1] == 0.5 && g->transfer[2] == 0 &&
                g->transfer[3] == 0);
    assert_ptr_equal(g->g.transfer, g->transfer);
}

static void test_forms_of_games(void **state) {
    static const char *const same[] = {
        "operator,cpu,gpu,transfer:gpu\na,4,1,0.5\nb,3,,\n",
        "transfer:gpu,cpu,operator,gpu\n0.5,4,a,1\n,3,b,inf\n",
        " {\"devices\": [\"cpu\", \"gpu\"], \"operators\": [{\"name\": \"a\", \"seconds\": [4, 1], "
        "\"transfer\": [null, 0.5]},"
        "{\"name\": \"b\", \"seconds\": [3, null]}]}"};
    cd_game_file g;
    (void)state;
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        assert_ok(read_game(same[k], &g));
        is_the_game(&g);
        cd_arena_free(&g.arena);
    }
    assert_ok(read_game("operator,cpu\na,4\n", &g));
    assert_null(g.g.transfer);
    cd_arena_free(&g.arena);
    static const struct {
        const char *text, *has;
        cdmpp_status want;
    } bad[] = {
        {"cpu,gpu\n1,2\n", "operator", CDMPP_ESCHEMA},
        {"operator\na\n", "1..64 devices, found 0", CDMPP_ESCHEMA},
        {"operator,cpu,transfer:gpu\na,1,2\n", "no device of this name", CDMPP_ESCHEMA},
        {"operator,cpu\na,x\n", "x", CDMPP_EPARSE},
        {"{\"devices\": [\"a\", \"a\"], \"operators\": [{\"name\": \"o\", \"seconds\": [1, 2]}]}",
         "two devices are called 'a'", CDMPP_ESCHEMA},
        {"{\"devices\": [\"a\", \"b\"], \"operators\": [{\"name\": \"o\", \"seconds\": [1]}]}",
         "operators[0].seconds", CDMPP_ESCHEMA},
        {"{\"devices\": [\"a\", \"b\"], \"operators\": [{\"name\": \"o\", \"seconds\": [1, 2, "
         "3]}]}",
         "found 3", CDMPP_ESCHEMA},
        {"{\"devices\": [\"a\"], \"operators\": [{\"name\": \"o\", \"seconds\": [1]}, "
         "{\"seconds\": [1]}]}",
         "operators[1].name", CDMPP_ESCHEMA},
        {"{\"devices\": [], \"operators\": []}", "devices", CDMPP_ESCHEMA},
        {"{\"devices\": [7], \"operators\": [{\"name\": \"o\", \"seconds\": [1]}]}", "devices[0]",
         CDMPP_ESCHEMA},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char text[600];
        assert_true(read_game(bad[k].text, &g) != CDMPP_OK);
        if (!strstr(cdmpp_err_format(&err, text, sizeof text), bad[k].has))
            fail_msg("%s: %s", bad[k].text, text);
        cd_arena_free(&g.arena);
    }
}

/* "@" in form: a time. */
static void is(cd_buf *b, const char *form, const double *s, bool wide) {
    cd_buf want = {0};
    for (; *form; form++) {
        if (*form == '@')
            wide ? cd_units_put_seconds_wide(&want, *s++) : cd_units_put_seconds(&want, *s++);
        else if (*form == '~') cd_units_put_seconds(&want, *s++);
        else cd_buf_put(&want, form, 1);
    }
    assert_string_equal(b->p, want.p);
    cd_buf_free(&want);
    cd_buf_clear(b);
}

static void test_game_printed(void **state) {
    static uint32_t where[] = {1, 0}, best[] = {0, 1};
    static double load[] = {3, 1.5};
    cd_game_file g;
    cd_buf b = {0};
    (void)state;
    assert_ok(read_game("operator,cpu,gpu,transfer:gpu\na,4,1,0.5\nb,3,,\n", &g));
    cd_game_result r = {.where = where,
                        .best = best,
                        .load = load,
                        .makespan_s = 7,
                        .best_s = 5,
                        .price = 1.25,
                        .gain = 0.0625,
                        .n_move = 9};
    cd_game_print(&g, &r, &b);
    is(&b,
       "operator                 equilibrium       takes  optimum\na                        gpu    "
       "      @  cpu\nb                        cpu          @  gpu\n\n"
       "loads: cpu ~, gpu ~\nequilibrium: all done after ~, reached by 9 moves; nobody gains by "
       "moving alone (largest gain 0.062)\noptimum: ~; price of anarchy 1.250\n",
       (const double[]){1.5, 3, 3, 1.5, 7, 5}, true);
    cd_game_print_json(&g, &r, &b);
    is(&b,
       "{\"operators\":[\"a\",\"b\"],\"equilibrium\":[\"gpu\",\"cpu\"],\"optimum\":[\"cpu\","
       "\"gpu\"],\"load_s\":{\"cpu\":3,\"gpu\":1.5},\"makespan_s\":7,\"optimum_s\":5,"
       "\"price_of_anarchy\":1.25,\"largest_gain\":0.0625,\"moves\":9}",
       NULL, false);
    r.best = NULL, r.best_s = r.price = NAN;
    cd_game_print(&g, &r, &b);
    assert_non_null(strstr(b.p, "\noptimum: not found within the effort\n"));
    assert_non_null(strstr(b.p, "  -\nb "));
    cd_buf_clear(&b);
    cd_game_print_json(&g, &r, &b);
    assert_non_null(strstr(b.p, "\"optimum\":null,"));
    assert_non_null(strstr(b.p, "\"optimum_s\":null,\"price_of_anarchy\":null,"));
    cd_buf_free(&b);
    cd_arena_free(&g.arena);
}

/* ---- packings ---- */
static cdmpp_status read_pack(const char *text, cd_pack_table *t) {
    *t = (cd_pack_table){0};
    memset(&err, 0, sizeof err);
    return cd_pack_read(tmp_put(&dir, "pack.csv", text, strlen(text)), t, &err);
}

static void test_packings(void **state) {
    cd_pack_table t;
    cd_buf b = {0};
    (void)state;
    assert_ok(read_pack(
        "seconds,operator,tasks,after\n0.5,late,3, first  other \n0.25,first,2,\n1,other,1,first\n",
        &t));
    assert_int_equal(t.n_op, 3);
    assert_true(t.op[0].tasks == 3 && t.op[0].task_s == 0.5 && t.op[1].tasks == 2 &&
                t.op[1].task_s == 0.25 && t.op[2].tasks == 1);
    assert_string_equal(t.op[0].name, "late");
    assert_true(t.op[0].n_after == 2 && t.after[t.op[0].first] == 1 &&
                t.after[t.op[0].first + 1] == 2);
    assert_true(t.op[1].n_after == 0 && t.op[2].n_after == 1 && t.after[t.op[2].first] == 1);
    static cd_pack_run run[] = {{.op = 1, .start_s = 0.5},
                                {.op = 0, .start_s = 4},
                                {.op = 1, .start_s = 0.25},
                                {.op = 0, .start_s = 3},
                                {.op = 2, .start_s = 1}};
    const cd_pack p = {
        .n_run = 5, .run = run, .makespan_s = 4.5, .chain_s = 1.75, .work_s = 6, .serial_s = 9};
    cd_pack_print(&t, 3, &p, &b);
    is(&b,
       "operator                    tasks     starts       ends\nlate                            3 "
       " @  @\nfirst                           2  @  @\nother                           1  @  @\n\n"
       "packed on 3 units: ~; no packing is below ~; one operator after the other: ~ (2.000x)\n",
       (const double[]){3, 4.5, 0.25, 0.75, 1, 2, 4.5, 2, 9}, true);
    cd_pack_print(&t, 6, &p, &b); /* the chain is longer than a sixth of the work */
    assert_non_null(strstr(b.p, "no packing is below 1.75 s"));
    cd_buf_clear(&b);
    cd_pack_print_json(&t, 3, &p, &b);
    is(&b,
       "{\"units\":3,\"makespan_s\":4.5,\"chain_s\":1.75,\"work_s\":6,\"serial_s\":9,\"operators\":"
       "[{\"name\":\"late\",\"tasks\":3,\"start_s\":3,\"end_s\":4.5},"
       "{\"name\":\"first\",\"tasks\":2,\"start_s\":0.25,\"end_s\":0.75},{\"name\":\"other\","
       "\"tasks\":1,\"start_s\":1,\"end_s\":2}]}",
       NULL, false);
    cd_arena_free(&t.arena);
    static const struct {
        const char *text, *has;
    } bad[] = {{"operator,tasks,seconds\na,0,1\n", "1..10000000, found 0"},
               {"operator,tasks,seconds\na,1.5,1\n", "found 1.5"},
               {"operator,tasks,seconds\na,10000001,1\n", "1..10000000, found"},
               {"operator,tasks,seconds\na,1,1\na,2,1\n", "two operators are called 'a'"},
               {"operator,tasks,seconds,after\na,1,1,b\n", "no operator 'b'"},
               {"operator,tasks,seconds,after\nab,1,1,a\n", "no operator 'a'"},
               {"operator,tasks\na,1\n", "seconds"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char text[600];
        assert_true(read_pack(bad[k].text, &t) != CDMPP_OK);
        if (!strstr(cdmpp_err_format(&err, text, sizeof text), bad[k].has))
            fail_msg("%s: %s", bad[k].text, text);
        cd_arena_free(&t.arena);
    }
    assert_ok(read_pack("operator,tasks,seconds\na,10000000,1\n", &t));
    cd_arena_free(&t.arena);
    cd_buf_free(&b);
}

/* ---- co-tuning ---- */
static cdmpp_status read_cotune(const char *text, uint32_t threads, cd_cotune_table *t) {
    *t = (cd_cotune_table){0};
    memset(&err, 0, sizeof err);
    const char *const path = tmp_put(&dir, "cotune.csv", text, strlen(text));
    return cd_cotune_read(&path, 1, threads, NULL, t, &err);
}

/* More threads than were measured may stay idle; a slower time with more threads does not count. */
static void test_times_by_threads(void **state) {
    static const double a[] = {8, 8, 4, 4}, b[] = {6, 6, 6, 5};
    cd_cotune_table t;
    (void)state;
    assert_ok(read_cotune(
        "bytes,threads,operator,seconds\n16,1,a,8\n4,1,b,6\n8,2,a,4\n8,3,a,9\n0,3,b,5\n", 0, &t));
    assert_true(t.threads == 3 && t.n_op == 2 && t.bytes[0] == 16 && t.bytes[1] == 4);
    for (int k = 1; k < 4; k++) assert_true(t.seconds[0][k] == a[k] && t.seconds[1][k] == b[k]);
    assert_true(isinf(t.seconds[0][0]));
    const uint32_t both[] = {2, 1}, one[] = {2, 0};
    assert_close(cd_cotune_table_time(0, both, 2, &t), 4, 0, 0); /* nobody disturbs */
    t.contention = (cd_contention){.peak_bytes_per_s = 4, .beside = 1.5, .turn = 2};
    /* a has all of the memory (16 / (4 * 4) = 1), b a sixth */
    const double slow = cd_contention_slow(&t.contention, 1, 1 + 1.0 / 6, 1, false),
                 alone = cd_contention_slow(&t.contention, 1, 1, 0, false);
    assert_close(cd_cotune_table_time(0, both, 2, &t), 4 * slow, 1e-12, 0);
    assert_close(cd_cotune_table_time(0, one, 2, &t), 4 * alone, 1e-12, 0);
    assert_true(slow > 1);
    cd_arena_free(&t.arena);
    /* fewer than the table has */
    assert_ok(read_cotune("operator,threads,seconds\na,1,8\na,2,4\n", 1, &t));
    assert_true(t.threads == 1 && t.seconds[0][1] == 8);
    cd_arena_free(&t.arena);
    static const char *const bad[] = {
        "operator,threads,seconds\na,0,1\n",          "operator,threads,seconds\na,1.5,1\n",
        "operator,threads,seconds\na,1,0\n",          "operator,threads,seconds\na,2,1\n",
        "operator,threads,seconds,bytes\na,1,1,-1\n", "operator,threads\na,1\n"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_true(read_cotune(bad[k], 0, &t) != CDMPP_OK);
        assert_non_null(strstr(err.path, "cotune.csv"));
        cd_arena_free(&t.arena);
    }
}

/* Sweeps: an operator a file; other factors and failures do not count. */
#define SWEEP(rows)                                                                                \
    "factor,value,median_s,ci,ratio,error_no\nbase,base,9,0,1,0\ntile,x=2,1,0,1,0\n" rows
static void test_times_by_sweeps(void **state) {
    static const char two[] = SWEEP("threads,1,8,0,1,0\nthreads,2,4,0,1,0\nthreads,3,0,0,0,4\n"),
                      one[] = SWEEP("threads,1,6,0,1,0\n"), none[] = SWEEP("threads,1,6,0,1,7\n");
    char path[3][256];
    (void)state;
    memset(&err, 0, sizeof err);
    snprintf(path[0], sizeof path[0], "%s", tmp_put(&dir, "conv.csv", two, sizeof two - 1));
    snprintf(path[1], sizeof path[1], "%s", tmp_put(&dir, "dense", one, sizeof one - 1));
    snprintf(path[2], sizeof path[2], "%s", tmp_put(&dir, "none.csv", none, sizeof none - 1));
    const char *const file[] = {path[0], path[1], path[2]}, *const twice[] = {path[0], path[0]};
    FAULT_SWEEP(f, 1) {
        cd_cotune_table t = {0};
        f.st = cd_cotune_read(file, 2, 0, NULL, &t, &err);
        fault_off();
        if (!f.st) {
            assert_true(t.n_op == 2 && t.threads == 2);
            assert_string_equal(t.name[0], "conv");
            assert_string_equal(t.name[1], "dense");
            assert_true(t.seconds[0][1] == 8 && t.seconds[0][2] == 4 && t.seconds[1][2] == 6);
        }
        cd_arena_free(&t.arena);
    }
    const struct {
        const char *const *path;
        size_t n;
        const char *machine, *has;
    } bad[] = {{file, 3, NULL, "none.csv: expected times of factor 'threads'"},
               {twice, 2, NULL, "of an operator of its own"},
               {file, 1, "m.json", "conv.csv: a sweep has no bytes"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_cotune_table t = {0};
        char text[600];
        memset(&err, 0, sizeof err);
        assert_true(cd_cotune_read(bad[k].path, bad[k].n, 0, bad[k].machine, &t, &err) != CDMPP_OK);
        if (!strstr(cdmpp_err_format(&err, text, sizeof text), bad[k].has)) fail_msg("%s", text);
        cd_arena_free(&t.arena);
    }
}

static void test_cotune_printed(void **state) {
    static uint32_t threads[] = {2, 1};
    cd_cotune_table t;
    cd_buf b = {0};
    (void)state;
    assert_ok(read_cotune("operator,threads,seconds\na,1,8\na,2,4\nb,1,6\nb,3,5\n", 0, &t));
    cd_cotune c = {.threads = threads,
                   .together_s = 6,
                   .sequential_s = 9,
                   .equal_s = 8,
                   .accepted = true,
                   .exact = true};
    cd_cotune_print(&t, &c, &b);
    is(&b,
       "operator                 alone: threads     seconds  together: threads    seconds\na       "
       "                              2   @                  2  @\n"
       "b                                     3   @                  1  @\n\none after the other: "
       "~; together with equal shares: ~; tuned: ~\n"
       "run together: 1.500 times as fast as one after the other (every way tried)\n",
       (const double[]){4, 4, 5, 6, 9, 8, 6}, true);
    cd_cotune_print_json(&t, &c, &b);
    is(&b,
       "{\"threads\":3,\"operators\":[{\"name\":\"a\",\"threads_alone\":2,\"alone_s\":4,"
       "\"threads\":2,\"together_s\":4},{\"name\":\"b\",\"threads_alone\":3,\"alone_s\":5,"
       "\"threads\":1,\"together_s\":6}],\"together_s\":6,\"sequential_s\":9,\"equal_s\":8,"
       "\"accepted\":true,\"exact\":true}",
       NULL, false);
    c.accepted = c.exact = false, c.together_s = 18;
    cd_cotune_print(&t, &c, &b);
    assert_non_null(strstr(
        b.p,
        "\nrun one after the other: together would take 2.000 times as long (hill climbing)\n"));
    cd_buf_clear(&b);
    t.threads = 1;
    cd_cotune_print(&t, &c, &b);
    assert_non_null(
        strstr(b.p, "\nrun one after the other: 1 threads are fewer than 2 operators\n"));
    assert_null(strstr(b.p, "tuned"));
    cd_buf_free(&b);
    cd_arena_free(&t.arena);
}

TESTS(set_up, tear_down, test_forms_of_games, test_game_printed, test_packings,
      test_times_by_threads, test_times_by_sweeps, test_cotune_printed)
