/* The folder of the user's models below a temporary one, for tests. */
#ifndef USER_FOLDER_H
#define USER_FOLDER_H
#include <stdio.h>
#include <stdlib.h>

#include "base/io/io.h"
#include "check.h"
#include "predictor/score/score.h"

/* Sets XDG_DATA_HOME, makes the folder, and names a file of it in `out`. */
static inline cdmpp_status user_file(tmp_dir *dir, const char *file, char out[512]) {
    static const char *const part[] = {"data", "data/cdmpp", "data/cdmpp/models"};
    cdmpp_err err = {0};
    cdmpp_status st = setenv("XDG_DATA_HOME", tmp_path(dir, "data"), 1) ? CDMPP_ENOMEM : CDMPP_OK;
    for (int i = 0; !st && i < 3; i++) st = cd_file_make_folder(tmp_path(dir, part[i]), &err);
    snprintf(out, 512, "%s/%s", tmp_path(dir, part[2]), file);
    return st;
}
#endif
