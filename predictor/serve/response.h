/* response -- the answer to a request as a line of JSON or CSV.
 *
 *   {"id":1,"latency_s":1.2e-4,"score":8130,"low_s":..,"high_s":..,"rel_std":0.07,"flags":["out_of_range"]}
 *   {"id":3,"error":{"code":"EMODEL","key":"rows[0]","message":"expected rows of 164 numbers, found 2"}}
 *   with costs also "measured_s" and "rel_error" = latency_s/measured_s - 1, null when the measurement failed; where another
 *   device answers "device", its name; "line" instead of "id" where the request has none
 *
 *   1,0.00012,8130,6e-05,0.0003,0.07,out_of_range,,,dtype float16
 *   3,,,,,,,EMODEL,"expected rows of 164 numbers, found 2",
 *
 * No state, any thread. */
#ifndef CD_RESPONSE_H
#define CD_RESPONSE_H
#include "base/core/core.h"
#include "predictor/score/score.h"

typedef struct cd_response {
    cd_str id;            /* as it is to be written; n == 0: none */
    long line;
    const cd_scored *o;
    const char *answered; /* name of the model's device that answered */
    bool costs;
} cd_response;

/* Append the line, with its end. */
void cd_response_json(cd_buf *b, const cd_response *a);
#define CD_ANSWER_CSV_HEAD "id,latency_s,score,low_s,high_s,rel_std,flags,error,message,reason\n"
/* The same as a line of CSV with the columns above. */
void cd_response_csv(cd_buf *b, const cd_response *a);
#endif
