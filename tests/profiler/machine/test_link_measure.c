/* Links of this machine: both ways, costs near what was measured; devices that are not there. */
#include <string.h>

#include "check.h"
#include "noopencl.h"
#include "profiler/machine/link_measure.h"

static cdmpp_err err;

/* Machines with others on them are noisy: a measurement that is far off is made again, this
 * often. */
enum { TRIES = 8 };

static bool near(const cd_link_table *l, const cd_link_measure_samples *p, const char *device) {
    double c;
    size_t far = 0;
    assert_int_equal(l->n, 2);
    for (size_t i = 0; i < p->n; i++) {
        c = cd_link_cost(cd_link_table_find(l, "cpu0", device), (int64_t)p->bytes[i]);
        far += c > 2 * p->to_s[i] || p->to_s[i] > 2 * c;
        c = cd_link_cost(cd_link_table_find(l, device, "cpu0"), (int64_t)p->bytes[i]);
        far += c > 2 * p->from_s[i] || p->from_s[i] > 2 * c;
    }
    return far <= p->n / 2; /* of 2 n */
}

static const cd_link_measure_options small = {.device = "ocl0", .max_bytes = 1 << 18, .repeats = 3};

static void test_host(void **state) {
    (void)state;
    cd_link_table l;
    cd_link_measure_samples p;
    bool good = false;
    for (int i = 0; i < TRIES && !good; i++) {
        cd_link_table_init(&l);
        assert_ok(cd_link_measure_host(&l, &small, &p, &err));
        assert_true(p.n > 20 && p.bytes[0] == 64);
        good = near(&l, &p, "ocl0");
        assert_string_equal(l.link[0].how, "copy");
        cd_link_table_free(&l);
    }
    assert_true(good);
}

static void test_opencl(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    int good[2] = {0, 0};
    for (int i = 0; i < 2 * TRIES; i++) {
        const int map = i % 2;
        cd_link_table l;
        cd_link_measure_samples p;
        if (good[map]) continue;
        cd_link_table_init(&l);
        assert_ok(cd_link_measure_opencl(&l, &small, "", map, &p, &err));
        good[map] = near(&l, &p, "ocl0");
        assert_string_equal(l.link[0].how, map ? "map" : "write");
        assert_string_equal(l.link[1].how, map ? "map" : "read");
        cd_link_table_free(&l);
    }
    assert_true(good[0] && good[1]);
}

static void test_absent(void **state) {
    (void)state;
    cd_link_table l;
    cd_link_table_init(&l);
    assert_int_not_equal(cd_link_measure_opencl(&l, &small, "nosuchplatform:7", false, NULL, &err),
                         CDMPP_OK);
    assert_status(cd_link_measure_cuda(&l, &small, 200, NULL, &err), CDMPP_EBACKEND);
    assert_int_equal(l.n, 0);
    memset(&err, 0, sizeof err);
    cd_link_table_free(&l);
}

TESTS(NULL, NULL, test_host, test_opencl, test_absent)
