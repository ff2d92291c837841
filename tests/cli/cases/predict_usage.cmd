cdmpp-predict a.json
