names := $(sort $(wildcard *.txt))
all: $(names:.txt=.count)
%.count: %.txt
	@wc -l < $< > $@; echo $@
