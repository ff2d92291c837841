/* Which schedules are chosen with a corrected model: as before the correction, so that no network
 * becomes slower by it. */
#include "made_calibrate.h"

static char facts_path[256];
static cd_model *facts_model; /* its analytic times go by numbers of the device */

static int begin(void **state) {
    static const char *const target[] = {"llvm -model=zen4"}, *const set[] = {
                                                                  "train.facts=prior",
                                                                  "model.members=[program]",
                                                                  "train.rounds=10"};
    cdmpp_err err = {0};
    char h5[256], text[512];
    if (setup(state)) return 1;
    snprintf(facts_path, sizeof facts_path, "%s", tmp_path(&dir, "facts.cdmpp"));
    cdmpp_status st =
        made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 3, facts_path, &err);
    if (!st) st = cd_model_load(facts_path, &facts_model, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    return st != CDMPP_OK;
}

static int end(void **state) {
    cd_model_free(facts_model);
    return teardown(state);
}

/* The model with a correction for "new": a machine whose caches are small and whose memory is slow.
 */
static cd_model *corrected(bool as_before) {
    cdmpp_err err = {0};
    const size_t w = cd_here_width(facts_model);
    float *x = cd_mem_zalloc(16, w * sizeof *x);
    double off[16];
    cd_here_trees trees;
    cd_buf out = {0};
    char *file;
    size_t n;
    cd_model *m = NULL;
    cd_device numbers = *cd_model_device_numbers(facts_model, 0);
    numbers.l1_kb = 1, numbers.l2_kb = 2, numbers.l3_kb = 4, numbers.bandwidth_gb_s = 0.1;
    for (size_t i = 0; i < 16; i++) off[i] = 0.1 * (double)i, x[i * w] = (float)i;
    assert_ok(cd_here_fit(x, off, 16, w, 1, &trees, &err));
    const cd_here h = {.stands = 0,
                       .name = "new",
                       .cpu = "x",
                       .programs = 16,
                       .widen = 1,
                       .most = (double)INFINITY,
                       .numbers = &numbers,
                       .stands_chooses = as_before,
                       .trees = trees};
    assert_ok(cd_file_read(facts_path, 0, &file, &n, &err));
    assert_ok(cd_here_add(file, n, &h, "", &out, &err));
    assert_ok(cd_model_from_bytes(out.p, out.n, &m, &err));
    assert_int_equal(cd_model_here(m)->stands_chooses, as_before);
    cd_xgb_free(trees.gbt);
    cd_buf_free(&out);
    cd_mem_free(file);
    cd_mem_free(x);
    return m;
}

static cd_schedule_db *choose(const cd_model *m, const char *device) {
    cdmpp_err err = {0};
    const cd_hardware hw = cd_target_hardware(false, 1, 64);
    const cd_schedule_db_pick pick = {
        .seed = 1, .target = "llvm -num-cores=1", .device = device, .hardware = &hw};
    const char *key[N_TASK];
    cd_schedule_db *db;
    for (size_t i = 0; i < N_TASK; i++) key[i] = cd_task_registry_at(tasks, i)->workload_key;
    assert_ok(cd_schedule_db_new(&db, &err));
    assert_ok(cd_schedule_db_predict(db, m, tasks, key, N_TASK, &pick, NULL, &err));
    return db;
}

/* Steps of the record: behind the text "origin" nothing, and the device of neither stands in it. */
static size_t different(const cd_schedule_db *a, const cd_schedule_db *b) {
    size_t n = 0;
    assert_int_equal(cd_schedule_db_count(a), cd_schedule_db_count(b));
    for (size_t i = 0; i < cd_schedule_db_count(a); i++) {
        const char *x = cd_schedule_db_at(a, i)->line, *y = cd_schedule_db_at(b, i)->line;
        const size_t to = (size_t)(strstr(x, ", \"r\": ") - x);
        n += strncmp(x, y, to) != 0;
    }
    return n;
}

/* Other numbers prefer other schedules; the model that calibrate writes for an unknown processor
 * chooses as the one before it did, task by task. */
TEST(a_calibrated_machine_chooses_as_before) {
    cd_schedule_db *before = choose(facts_model, "zen4");
    for (int as_before = 0; as_before < 2; as_before++) {
        cd_model *m = corrected(as_before);
        cd_schedule_db *after = choose(m, "new");
        assert_int_equal(different(before, after) == 0, as_before);
        cd_schedule_db_free(after);
        after = choose(m, "zen4"); /* for itself the stand-in chooses as ever */
        assert_int_equal(different(before, after), 0);
        cd_schedule_db_free(after);
        cd_model_free(m);
    }
    cd_schedule_db_free(before);
}

TESTS(begin, end, a_calibrated_machine_chooses_as_before)
