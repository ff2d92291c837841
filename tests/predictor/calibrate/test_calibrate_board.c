/* A calibration of a board: who it is, which numbers it has, what is written. Its workers are made
 * up: what measures is a clock. */
#include "made_calibrate.h"
#include "predictor/calibrate/calibrate_internal.h"

static const cd_remote_about about = {
    .device = "Board 9", .model = "board-9", .isa = "aarch64", .cpus = 3};
static cd_log quiet;

static cdmpp_status find(const cd_remote_about *who, const char *target, const char *isa,
                         const char *stands, cd_calibrate_machine *io, cdmpp_err *err) {
    const cd_calibrate_options o = {
        .target = target, .isa = isa, .board = who, .model = model_path, .log = &quiet};
    cd_device_table *devices = NULL;
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_load("configs/devices.yaml", &diag, &devices, err);
    *io = (cd_calibrate_machine){.stands = stands};
    if (!st) st = cd_calibrate_machine_find(&o, model, devices, io, err);
    if (!st && who) assert_ptr_equal(io->numbers, &io->code.device); /* a copy: the table goes */
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    return st;
}

TEST(who_it_is) {
    cdmpp_err err = {0};
    cd_calibrate_machine m;
    assert_ok(find(&about, "llvm -num-cores=1", about.isa, "zen4", &m, &err));
    assert_string_equal(m.name.name, "board-9");
    assert_non_null(strstr(m.name.says, "Board 9"));
    assert_string_equal(m.stands, "zen4");
    assert_null(m.own);
    assert_ok(find(&about, "llvm -model=own", about.isa, "zen4", &m, &err));
    assert_string_equal(m.name.name, "own");
    const cd_remote_about nameless = {.device = "Board 9", .cpus = 3};
    assert_status(find(&nameless, "llvm", NULL, "zen4", &m, &err), CDMPP_EUSAGE);
    const cd_remote_about known = {.model = "zen5-avx512", .isa = "avx512", .cpus = 8};
    /* a described one has the most similar of the model */
    assert_ok(find(&known, "llvm", known.isa, NULL, &m, &err));
    assert_string_equal(m.stands, "zen4");
}

/* A described board is no other described one; a word of the user's, an alias, and any name of a
 * board that nobody describes are taken. */
TEST(whose_name_it_may_have) {
    static const cd_remote_about known = {
        .device = "EPYC", .model = "zen5-avx512", .isa = "avx512", .cpus = 8};
    cdmpp_err err = {0};
    cd_calibrate_machine m;
    assert_status(find(&known, "llvm -model=zen4", known.isa, "zen4", &m, &err), CDMPP_EUSAGE);
    assert_non_null(
        strstr(err.msg, "--target says -model=zen4, but this device is zen5-avx512 (board, EPYC)"));
    assert_ok(find(&known, "llvm -model=zen5", known.isa, "zen4", &m, &err));
    assert_ok(find(&known, "llvm -model=mine", known.isa, "zen4", &m, &err));
    assert_string_equal(m.name.name, "mine");
    assert_ok(find(&about, "llvm -model=zen5-avx512", about.isa, "zen4", &m, &err));
}

/* The same of this machine's processor: of two described names one at least is another's. */
TEST(whose_name_this_machine_may_have) {
    cdmpp_err err = {0};
    cd_calibrate_machine m;
    int refused = 0;
    static const char *const target[] = {"llvm -model=zen4", "llvm -model=graviton2"};
    for (int k = 0; k < 2; k++) {
        const cdmpp_status st = find(NULL, target[k], NULL, "zen4", &m, &err);
        assert_true(!st || (st == CDMPP_EUSAGE && strstr(err.msg, "but this device is")));
        refused += st != CDMPP_OK;
    }
    assert_true(refused > 0);
    assert_ok(find(NULL, "llvm -model=mine", NULL, "zen4", &m, &err));
}

/* Vectors of the board, caches and clock of the device that stands for it. */
TEST(its_vectors) {
    cdmpp_err err = {0};
    cd_calibrate_machine wide, narrow;
    assert_ok(find(&about, "llvm", "avx512", "zen4", &wide, &err));
    assert_ok(find(&about, "llvm", "aarch64", "zen4", &narrow, &err));
    assert_int_equal((int)wide.numbers->simd_bits, 512);
    assert_int_equal((int)narrow.numbers->simd_bits, 128);
    assert_true(narrow.numbers->fp32_gflops < wide.numbers->fp32_gflops);
    assert_true(narrow.numbers->l2_kb == wide.numbers->l2_kb && narrow.numbers->l2_kb > 0);
}

static cdmpp_status run(made_clock *c, size_t batch, cd_buf *text, cdmpp_err *err) {
    const cd_calibrate_clock clock = {
        .ctx = c, .now = made_now, .measure = made_measure, .batch = batch};
    const cd_calibrate_options o = {.model = model_path,
                                    .out = tmp_path(&dir, "board.cdmpp"),
                                    .records = log_path,
                                    .device = "zen4",
                                    .tasks = tasks,
                                    .target = "llvm -num-cores=1",
                                    .isa = about.isa,
                                    .board = &about,
                                    .threads = 1,
                                    .seed = 1,
                                    .most = 40,
                                    .limit_s = 59,
                                    .force = true,
                                    .json = true,
                                    .clock = &clock,
                                    .log = &quiet};
    return cd_calibrate_run(&o, text, err);
}

/* Any number of programs together gives the same log, but for where it ends. Nothing of this
 * machine goes into the model. */
TEST(the_model_of_a_board) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    char *log[2];
    size_t n[2];
    static const size_t batch[] = {0, CD_CALIBRATE_BATCH};
    for (int k = 0; k < 2; k++) {
        (void)unlink(log_path);
        cd_buf_clear(&text);
        made_clock c = {.each = 1};
        assert_ok(run(&c, batch[k], &text, &err));
        assert_ok(cd_file_read(log_path, 0, &log[k], &n[k], &err));
    }
    size_t same = 0;
    /* line by line, up to the result */
    for (const char *a = log[0], *b = log[1]; *a && *b; same++) {
        const char *ra = strstr(a, ", \"r\": "), *rb = strstr(b, ", \"r\": ");
        assert_true(ra && rb && ra - a == rb - b);
        assert_memory_equal(a, b, (size_t)(ra - a));
        a = strchr(ra, '\n') + 1;
        b = strchr(rb, '\n') + 1;
    }
    assert_true(same > 20);
    assert_non_null(strstr(log[0], "-model=board-9"));
    assert_null(strstr(log[0], "-mcpu=")); /* of vectors of 128 bits */
    cd_model *m;
    assert_ok(cd_model_load(tmp_path(&dir, "board.cdmpp"), &m, &err));
    assert_string_equal(cd_model_here(m)->name, "board-9");
    assert_null(strstr(cd_model_header(m), "\"description\":"));
    cd_model_free(m);
    cd_mem_free(log[0]);
    cd_mem_free(log[1]);
    cd_buf_free(&text);
}

/* A slow board: the first batch is small, and no batch is larger than the time that is left. */
TEST(a_slow_board_keeps_the_limit) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_clock c = {.each = 2.5};
    (void)unlink(log_path);
    assert_ok(run(&c, CD_CALIBRATE_BATCH, &text, &err));
    assert_true(c.measured >= 12 && c.now <= 59);
    cd_buf_free(&text);
}

TEST(every_allocation_may_fail) {
    (void)unlink(log_path);
    FAULT_SWEEP(f, 3) {
        cd_calibrate_machine m;
        f.st = find(&about, "llvm", about.isa, "zen4", &m, &f.err);
    }
}

static int begin(void **state) {
    cd_log_init(&quiet, "", stderr);
    quiet.level = CD_LOG_ERROR;
    return setup(state);
}

TESTS(begin, teardown, who_it_is, whose_name_it_may_have, whose_name_this_machine_may_have,
      its_vectors, the_model_of_a_board, a_slow_board_keeps_the_limit, every_allocation_may_fail)
