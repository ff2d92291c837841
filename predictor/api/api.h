/* The door of predictor/api: other rooms include this header and no other of the room.
 *
 * The public calls of cdmpp.h: contexts, scores, observers. The door shows the insides of the
 * opaque types to the rooms that serve requests with the same calls. */
#ifndef CD_PREDICTOR_API_DOOR_H
#define CD_PREDICTOR_API_DOOR_H
#include "predictor/api/api_internal.h"
#endif
