/* The door of predictor/api: other rooms include this header and no other of the room.
 *
 * The calls of cdmpp.h. */
#ifndef CD_PREDICTOR_API_DOOR_H
#define CD_PREDICTOR_API_DOOR_H
#include "predictor/api/api_internal.h"
#endif
