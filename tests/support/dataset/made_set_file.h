/* The data set of made_set.h in a folder of the test program's own: TESTS(made_set_up,
 * made_set_down, ...). */
#ifndef MADE_SET_FILE_H
#define MADE_SET_FILE_H
#include "made_set.h"
#include "tmp.h"

static tmp_dir dir;
static char h5[256];

static int made_set_up(void **s) {
    (void)s;
    dir = tmp_make();
    snprintf(h5, sizeof h5, "%s", tmp_path(&dir, "d.h5"));
    made_set_write(h5);
    return 0;
}

static int made_set_down(void **s) {
    (void)s;
    tmp_remove(&dir);
    return 0;
}
#endif
