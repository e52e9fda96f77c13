package testkit

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Template is a database that many tests of a package begin with: the first of them
// fills it, each gets a copy. Declare it as a variable of the package; Main drops it.
//
// What tests share besides the rows, such as keys that rows were sealed with, is kept by
// the function that fills it, and must not be changed afterwards.
type Template struct {
	once sync.Once
	name string
}

var (
	templatesMu sync.Mutex
	templates   []string // to be dropped in the end
)

// NewDatabase makes a database for one test that has what fill put into the template,
// and drops it when the test ends. The first caller's fill is the one that is used; it
// must leave no connection open but those of d.
func (p *Template) NewDatabase(t testing.TB, fill func(d *Database)) *Database {
	t.Helper()
	s := server(t)
	p.once.Do(func() { p.make(t, s, fill) })
	if p.name == "" {
		t.Fatal("the template of the test databases could not be filled; the first test that wanted it says why")
	}
	return copyOf(t, s, p.name)
}

func (p *Template) make(t testing.TB, s *testServer, fill func(d *Database)) {
	t.Helper()
	name := "f_" + random()
	if err := s.create(context.Background(), name, s.template); err != nil {
		t.Fatalf("make the template of test databases: %v", err)
	}
	templatesMu.Lock()
	templates = append(templates, name)
	templatesMu.Unlock()
	d, err := open(withDatabase(s.dsn, name))
	if err != nil {
		t.Fatalf("connect to the template of test databases: %v", err)
	}
	defer d.DB.Close()
	fill(d)
	if !t.Failed() {
		p.name = name
	}
}

// dropTemplates drops what Templates of this package made.
func dropTemplates(s *testServer) {
	templatesMu.Lock()
	defer templatesMu.Unlock()
	for _, name := range templates {
		if _, err := s.admin.ExecContext(context.Background(), `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
