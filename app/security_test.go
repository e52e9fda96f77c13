package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityPromisesHaveTests: each test that docs/security.md names exists, and each
// promise names one.
func TestSecurityPromisesHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests bytes.Buffer
	for _, top := range []string{".", "../planner", "../solver", "../provisioner", "../jobs", "../migrations", "../views"} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			tests.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Za-z0-9]+)`")
	rows := 0
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise") {
			continue
		}
		rows++
		found := named.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			t.Errorf("no test keeps the promise %s", line)
		}
		for _, name := range found {
			if !bytes.Contains(tests.Bytes(), []byte("func "+name[1]+"(")) {
				t.Errorf("there is no %s, which is to keep the promise %s", name[1], line)
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d promises were found", rows)
	}
}
