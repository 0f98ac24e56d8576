# Every target works from a fresh clone: it makes the environment that it needs under .env/ first.
.DEFAULT_GOAL := help
.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14
