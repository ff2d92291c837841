cdmpp-extract a.json
