"""A server of opponents for frontends in any language: the position protocol over HTTP and over stdin and stdout."""
