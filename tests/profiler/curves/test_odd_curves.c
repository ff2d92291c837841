/* Odd tables of curves and of settings. */
#include "odd.h"
#include "profiler/curves/curves.h"
#include "tmp.h"

static cdmpp_status curves_of(const char *path, const char *op, size_t limit, cdmpp_err *err) {
    cd_curve_set c = {.op = op, .limit = limit};
    const cdmpp_status st = cd_curve_set_read(&c, path, err);
    cd_curve_set_free(&c);
    return st;
}
static cdmpp_status curves(const char *path, cdmpp_err *err) {
    return curves_of(path, NULL, 0, err);
}
static cdmpp_status curves_of_a(const char *path, cdmpp_err *err) {
    return curves_of(path, "a", 1, err);
}

static cdmpp_status settings_of(const char *path, const char *axes, cdmpp_err *err) {
    cd_correlation_table t = {0};
    const cdmpp_status st = cd_correlation_table_read(path, "seconds", axes, 0.5, &t, err);
    cd_correlation_table_free(&t);
    return st;
}
static cdmpp_status settings(const char *path, cdmpp_err *err) {
    return settings_of(path, NULL, err);
}
static cdmpp_status two_settings(const char *path, cdmpp_err *err) {
    return settings_of(path, "a,b", err);
}

#define TSV                                                                                        \
    "set\thost\toperator\tdevice_id\tvaried\tshape\tpoints_n:ms\ns\th\ta\t1\tn\t[1,n]\t1:2 2:3 "   \
    "4:5\ns\th\tb\t\tn\t\t1:2 3:3\n"

TEST(files) {
    tmp_dir dir = tmp_make();
    const char *path = tmp_path(&dir, "curves");
    odd_all_of_file(path, TSV, curves);
    odd_all_of_file(path, TSV, curves_of_a);
    odd_all_of_file(path, "size,seconds,curve\n1,2,a\n2,3,a\n4,5,b\n1,1,b\n", curves);
    odd_all_of_file(path, "size,seconds,curve\n1,2,a\n2,3,a\n4,5,b\n1,1,b\n", curves_of_a);
    odd_all_of_file(path, "size,seconds\n1,2\n2,3\n4,5\n", curves);
    odd_all_of_file(path, "a,b,seconds\n1,2,3\n2,3,4\n4,1,9\n5,2,7\n6,1,2\n", settings);
    odd_all_of_file(path, "a,b,c,seconds\n1,2,3,3\n2,3,x,4\n4,1,5,9\n5,2,1,7\n6,1,1,2\n",
                    two_settings);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files)
