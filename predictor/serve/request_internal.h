/* request -- one line of cdmpp-predict --stream: what is asked, and how the answer is called.
 *
 *   {"id":1,"device":"t4","task":"[\"d7b6..\"]","rows":[[164 numbers], ...]}        rows of a program
 *   {"id":2,"task":"[\"d7b6..\"]","target":"cuda","hardware":[8 ints],"steps":[["SP",..], ..]}   a schedule
 *   {"i":[[key, target, ..], [[], steps]],"r":[..],"v":"v0.6"}                      a line of a measure log
 *   {"cmd":"hello"}  {"cmd":"stats"}                                                about the other side
 *
 * (1) "id" is a number or a text of at most CD_REQUEST_ID bytes, answered as it was written.
 * (2) Each member once, and none that is not known: a misspelt "device" must not be another device.
 * (3) "steps" need "task"; of "i", "rows", "steps", "cmd" there is exactly one. "r" is read only when costs
 *     are wanted. Rows and steps stay text: the scorer parses them, on its own thread.
 * Texts of the answer point into the line or live in the arena. No state, any thread. */
#ifndef CD_REQUEST_INTERNAL_H
#define CD_REQUEST_INTERNAL_H
#include "predictor/score/score.h"

enum { CD_REQUEST_ID = 256 };

typedef enum { CD_REQUEST_SCORE, CD_REQUEST_HELLO, CD_REQUEST_STATS } cd_request_kind;

typedef struct cd_request {
    cd_str id;   /* n == 0: none, or not read yet when something was wrong */
    cd_request_kind kind;
    cd_candidate ask;  /* of SCORE; without its aim */
    cd_aim aim;
} cd_request;

/* tasks NULL: none are defined; "task" is then only a name. Errors, key is the member: EPARSE, ESCHEMA, ERANGE, ENOTASK, ENOMEM. */
cdmpp_status cd_request_read(cd_arena *a, const cd_task_registry *tasks, cd_str line, bool costs, cd_request *out, cdmpp_err *err);
/* The same from texts that are not JSON, each n == 0 where there is none. Errors: ENOTASK, ENOMEM. */
cdmpp_status cd_request_aim(cd_arena *a, const cd_task_registry *tasks, cd_str task, cd_str target, cd_aim *out, cdmpp_err *err);
#endif
