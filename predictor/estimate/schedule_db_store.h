/* schedule_db_store -- schedules out of a store of measurements: of each task the device's fastest record. One thread. */
#ifndef CD_SCHEDULE_DB_STORE_H
#define CD_SCHEDULE_DB_STORE_H
#include "predictor/estimate/schedule_db.h"

/* key (n): sorted; what the database has already stays. Errors: those of cd_store_open, with the path; ENOMEM. */
cdmpp_status cd_schedule_db_store_read(cd_schedule_db *to, const char *path, const char *device, const char *const *key, size_t n, cdmpp_err *err);
#endif
