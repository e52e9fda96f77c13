package lab

import (
	"fmt"
	"slices"
	"strings"
)

// livePages is the name of what is measured of many open pages.
const livePages = "live pages"

// checkPages reports a word that no name of a page contains.
func checkPages(words []string) error {
	var names []string
	for _, p := range slices.Concat(pagesOf(0, "", fullScale.nodes, 0), []page{{name: livePages}, {name: logPage(0)}}, filtersOf()) {
		names = append(names, p.name)
	}
	for _, word := range words {
		if word == "" || !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, word) }) {
			return fmt.Errorf("--pages takes parts of names of pages, not “%s”; there are %s", word, strings.Join(names, ", "))
		}
	}
	return nil
}

// wants reports whether what has a name is measured.
func (s *benchScale) wants(name string) bool {
	return len(s.picked) == 0 || slices.ContainsFunc(s.picked, func(word string) bool { return strings.Contains(name, word) })
}

// pickedOf returns the pages that are measured.
func (s *benchScale) pickedOf(pages []page) []page {
	return slices.DeleteFunc(pages, func(p page) bool { return !s.wants(p.name) })
}
