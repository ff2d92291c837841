/* Lines of the example's records become jobs, and jobs records again. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "profiler/records/record_program.h"
#include "profiler/records/records.h"

#define TASKS "examples/zen5/zen5.tasks.json.xz"
#define LOG   "examples/zen5/held_out.json"

typedef struct {
    cd_task_registry *tasks;
    cd_record_reader *file;
    cd_record_maker maker;
} setting;

static setting begin(void) {
    setting s = {0};
    static const char *const path[] = {LOG};
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_new(&s.tasks, &err));
    assert_ok(cd_task_registry_load(s.tasks, TASKS, &err));
    assert_ok(cd_record_reader_open(path, 1, &s.file, &err));
    s.maker = (cd_record_maker){.tasks = s.tasks, .dialect = -1, .reference = true};
    assert_ok(cd_program_new(&s.maker.program, &err));
    return s;
}

static void end(setting *s) {
    cd_record_reader_close(s->file);
    cd_program_free(s->maker.program);
    cd_task_registry_free(s->tasks);
}

static cd_record_program next_job(setting *s) {
    cd_recline l;
    cd_record_program j;
    cdmpp_err err = {0};
    assert_ok(cd_record_reader_next(s->file, &l, &err));
    assert_non_null(l.text);
    assert_ok(cd_record_program_make(&s->maker, &l, &j, &err));
    assert_ok(cd_record_program_code(&s->maker, &j, &err));
    return j;
}

/* Equal records have equal names and texts; another target is another record, not another
 * program. */
TEST(test_names) {
    setting a = begin(), b = begin();
    b.maker.target = "llvm -model=here";
    for (int i = 0; i < 3; i++) {
        cd_record_program x = next_job(&a), y = next_job(&b);
        assert_int_equal(x.why.code, CDMPP_OK);
        assert_true(x.id.a != y.id.a);
        assert_string_equal(y.target, "llvm -model=here");
        assert_true(x.code.text.n > 0 && x.reference.text.n > 0);
        assert_non_null(strstr(x.code.text.p, x.code.launch[0].entry));
        assert_int_equal(x.code.n_arg, x.reference.n_arg);
        cd_record_program_free(&x);
        cd_record_program_free(&y);
    }
    end(&a);
    end(&b);
    a = begin(), b = begin();
    cd_record_program x = next_job(&a), y = next_job(&b);
    assert_string_equal(x.code.text.p, y.code.text.p);
    assert_memory_equal(&x.id, &y.id, sizeof x.id);
    cd_record_program_free(&x);
    cd_record_program_free(&y);
    end(&a);
    end(&b);
}

/* Mean of the costs = mean of what was kept, in at most ten numbers. */
TEST(test_costs) {
    setting s = begin();
    cdmpp_err err = {0};
    for (unsigned n = 1; n <= CD_TIMING_MAX; n += n < 15 ? 1 : 80) {
        cd_record_program j = next_job(&s);
        static cd_measure_result m;
        cd_record r;
        double sum = 0, all = 0;
        memset(&m, 0, sizeof m);
        m.time.n = n;
        m.at = 1234;
        m.build_s = 1;
        m.run_s = 2;
        for (unsigned i = 0; i < n; i++) {
            m.time.sample_s[i] = i + 1;
            m.time.kept[i] = n < 3 || i % 3 != 1;
            m.time.n_kept += m.time.kept[i];
            if (m.time.kept[i]) all += i + 1;
        }
        assert_ok(cd_record_program_record(&j, &m, &r, &err));
        assert_true(r.n_cost >= 1 && r.n_cost <= CD_RECORD_PROGRAM_COSTS);
        assert_true(r.n_cost == CD_RECORD_PROGRAM_COSTS || r.n_cost == m.time.n_kept);
        for (uint32_t k = 0; k < r.n_cost; k++) sum += r.cost_s[k];
        if (m.time.n_kept <= CD_RECORD_PROGRAM_COSTS ||
            m.time.n_kept % CD_RECORD_PROGRAM_COSTS == 0)
            assert_close(sum / r.n_cost, all / m.time.n_kept, 1e-12, 0);
        assert_int_equal(r.timestamp, 1234);
        assert_close(r.total_s, 3, 1e-12, 0);
        assert_int_equal(r.error_no, 0);
        m.error_no = 6;
        assert_ok(cd_record_program_record(&j, &m, &r, &err));
        assert_int_equal(r.n_cost, 1);
        assert_close(r.cost_s[0], 1e10, 0, 0);
        cd_record_program_free(&j);
    }
    end(&s);
}

/* The mean of the numbers that there are; of a failed program, or one without numbers, what stands
 * for never. */
TEST(test_cost_of_a_record) {
    static const double cost[] = {1, 2, 6, 1000};
    static const struct {
        int error_no;
        uint32_t n;
        double want;
    } tab[] = {{0, 1, 1},
               {0, 2, 1.5},
               {0, 3, 3},
               {0, 0, CD_MEASURE_FAILED_S},
               {4, 3, CD_MEASURE_FAILED_S},
               {1, 0, CD_MEASURE_FAILED_S}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        assert_close(cd_record_program_cost_s(&(cd_record){
                         .error_no = tab[k].error_no, .n_cost = tab[k].n, .cost_s = cost}),
                     tab[k].want, 1e-15, 0);
}

/* Lines that give no job, and a record whose steps do not fit. */
TEST(test_bad) {
    setting s = begin();
    cdmpp_err err = {0};
    cd_record_program j;
    static const char unknown[] =
        "{\"i\": [[\"[\\\"nosuch\\\"]\", \"llvm\", [1,64,64,0,0,0,0,0], \"\", 0, []], [[], []]], "
        "\"r\": [[0.1], 0, 1, 1], \"v\": \"v0.6\"}";
    cd_recline l = {"x.json", 3, unknown, sizeof unknown - 1};
    assert_status(cd_record_program_make(&s.maker, &l, &j, &err), CDMPP_ENOTASK);
    assert_int_equal(err.line, 3);
    cd_record_program_free(&j);
    l = (cd_recline){"x.json", 4, "{", 1};
    err = (cdmpp_err){0};
    assert_status(cd_record_program_make(&s.maker, &l, &j, &err), CDMPP_EPARSE);
    cd_record_program_free(&j);
    cd_recline good;
    assert_ok(cd_record_reader_next(s.file, &good, &err));
    char *text = malloc(good.len + 64), *steps;
    memcpy(text, good.text, good.len + 1);
    steps = strstr(text, ", [[], [[");
    assert_non_null(steps);
    const size_t at = (size_t)(steps - text) + 8;
    static const char step[] = "[\"CI\", 77], ";
    memmove(text + at + sizeof step - 1, text + at, good.len - at + 1);
    memcpy(text + at, step, sizeof step - 1);
    l = (cd_recline){"x.json", 5, text, good.len + sizeof step - 1};
    assert_ok(cd_record_program_make(&s.maker, &l, &j, &err));
    assert_ok(cd_record_program_code(&s.maker, &j, &err));
    assert_int_equal(j.why.code, CDMPP_EINVALID);
    assert_int_equal(j.why.line, 5);
    cd_record_program_free(&j);
    free(text);
    end(&s);
}

TEST(test_sums) {
    cd_record_stats s;
    cd_buf b = {0};
    cd_record_stats_begin(&s, 10);
    const cd_measure_result good = {.flags = CD_MEASURE_NOISY | CD_MEASURE_CACHED};
    const cd_measure_result bad = {.error_no = 4};
    for (int i = 0; i < 5; i++) cd_record_stats_add(&s, i < 3 ? &good : &bad);
    cd_record_stats_json(&b, &s, 12);
    static const char *const said[] = {"\"measured\":3",        "\"failed\":2", "\"noisy\":3",
                                       "\"cached\":3",          "\"4\":2",      "\"seconds\":2",
                                       "\"programs_per_s\":2.5"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) assert_non_null(strstr(b.p, said[i]));
    cd_buf_free(&b);
    assert_string_equal(cd_record_stats_error(7), "running took too long");
    assert_string_equal(cd_record_stats_error(99), "unknown");
}

static int64_t cores_of(int threads, int cpus) {
    setting s = begin();
    s.maker.threads = threads;
    s.maker.cpus = cpus;
    cd_record_program j = next_job(&s), again;
    cd_buf line = {0};
    cd_record_id id = j.id;
    cdmpp_err err = {0};
    const int64_t cores = j.record.hardware.num_cores;
    assert_int_equal(cores, cd_record_program_threads(&j, threads, cpus ? cpus : 1000));
    assert_ok(cd_record_write(&line, &j.record, &err));
    const cd_recline l = {.path = "again", .number = 1, .text = line.p, .len = line.n};
    assert_ok(cd_record_program_make(&s.maker, &l, &again, &err)); /* a run that goes on finds it */
    assert_memory_equal(&again.id, &id, sizeof id);
    cd_buf_free(&line);
    cd_record_program_free(&again);
    cd_record_program_free(&j);
    end(&s);
    return cores;
}

/* A record says with how many threads it was measured. Those of the example are of one core. */
TEST(test_threads) {
    assert_int_equal(cores_of(0, 0), 1);
    assert_int_equal(cores_of(3, 0), 3);
    assert_int_equal(cores_of(3, 2), 3); /* who asks for more than there are gets them */
    assert_int_equal(cores_of(0, 4), 1);
}

TESTS(NULL, NULL, test_threads, test_names, test_costs, test_cost_of_a_record, test_bad, test_sums)
