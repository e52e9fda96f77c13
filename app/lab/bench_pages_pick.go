package lab

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/wiring"
)

// livePages is the name of what is measured of many open pages.
const livePages = "live pages"

// pick takes from args which pages are measured and for how long, and gives the rest.
func (s *benchScale) pick(args []string) ([]string, error) {
	text, args, found := wiring.TakeFlag(args, "seconds")
	if found {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 60 {
			return nil, wiring.UsageError("--seconds takes a number from 1 to 60, not “%s”", text)
		}
		s.while = time.Duration(n) * time.Second
	}
	text, args, found = wiring.TakeFlag(args, "pages")
	if !found {
		return args, nil
	}
	var names []string
	for _, p := range slices.Concat(pagesOf(0, "", s.nodes, 0), []page{{name: livePages}, {name: logPage(0)}}, filtersOf()) {
		names = append(names, p.name)
	}
	for word := range strings.SplitSeq(text, ",") {
		if word == "" || !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, word) }) {
			return nil, wiring.UsageError("--pages takes parts of names of pages, not “%s”; there are %s", word, strings.Join(names, ", "))
		}
		s.picked = append(s.picked, word)
	}
	return args, nil
}

// wants says whether what has a name is measured.
func (s *benchScale) wants(name string) bool {
	return len(s.picked) == 0 || slices.ContainsFunc(s.picked, func(word string) bool { return strings.Contains(name, word) })
}

// pickedOf gives those of the pages that are measured.
func (s *benchScale) pickedOf(pages []page) []page {
	return slices.DeleteFunc(pages, func(p page) bool { return !s.wants(p.name) })
}
