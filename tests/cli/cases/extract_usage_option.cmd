cdmpp-extract --frobnicate
