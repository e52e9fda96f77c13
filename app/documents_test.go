package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	namedDocument = regexp.MustCompile(`[\w./-]*\b[\w-]+\.md\b`)
	namedSource   = regexp.MustCompile("`((?:app|views|static|jobs|solver|planner|provisioner|migrations|seeds|docs)/[\\w./-]+)`")
)

// TestDocumentsThatCommentsNameExist: whoever reads a comment can open what it names.
func TestDocumentsThatCommentsNameExist(t *testing.T) {
	t.Parallel()
	for path, text := range sources(t, ".go", ".templ", ".sql") {
		for line := range strings.Lines(text) {
			_, comment, found := strings.Cut(line, "//")
			if strings.HasSuffix(path, ".sql") {
				_, comment, found = strings.Cut(line, "--")
			}
			if !found || strings.HasSuffix(path, "_templ.go") {
				continue
			}
			for _, name := range namedDocument.FindAllString(comment, -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err != nil && !exists(name) && !exists(filepath.Join("docs", name)) && !exists(filepath.Join("docs", "decisions", name)) {
					t.Errorf("%s names %s, which is not in the repository: %s", path, name, strings.TrimSpace(line))
				}
			}
		}
	}
}

// TestGuidesNameWhatExists: files that the guides for contributors name are there.
func TestGuidesNameWhatExists(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, guide := range []string{"CONTRIBUTING.md", "docs/architecture.md", "docs/engine.md"} {
		text, err := os.ReadFile(filepath.Join("..", guide))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedSource.FindAllStringSubmatch(string(text), -1) {
			if name := strings.TrimSuffix(m[1], "…"); strings.ContainsAny(name, "{*") {
				continue
			} else if seen++; !exists(name) && !exists(strings.TrimSuffix(name, "/")) {
				t.Errorf("%s names %s, which is not in the repository", guide, name)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d files were found in the guides", seen)
	}
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join("..", name))
	return err == nil
}

// sources returns the files of the repository with one of the endings, by their path.
func sources(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"var", ".git", "bin", "node_modules", "testdata"}, name):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(endings, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
