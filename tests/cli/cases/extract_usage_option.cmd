cdmpp-extract --frobnicate
cdmpp-extract --task t
cdmpp-extract --shard 3/2 --tasks t --out o a
cdmpp-extract --log-format json --frobnicate
