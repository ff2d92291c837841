cdmpp-extract --tasks t --out o -j 0 a.json
