package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/planner/macro"
)

type expandYes struct {
	Config map[string]any `json:"config"`
}

type expandNo struct {
	Errors []expandError `json:"errors"`
}

// expandError is one macro that cannot be filled. At is the path of its value,
// Offset where in it the macro begins, in characters from 0.
type expandError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	At      string `json:"at"`
	Offset  int    `json:"offset"`
	Macro   string `json:"macro,omitempty"`
}

// Codes of macros that cannot be filled.
const (
	codeSyntax     = "SYNTAX"
	codeIncomplete = "INCOMPLETE"
	codeUnknown    = "UNKNOWN"
	codeParameter  = "PARAMETER" // a value that its service does not take
)

// expandQuestion is what loom expand has read.
type expandQuestion struct {
	facts  *macro.Facts
	self   loom.NodeID
	config map[string]any
	// services have parameters that the config must satisfy.
	services map[string]loom.Service
}

type expandCmd struct{ document }

// Run expands the macros of a config for a node; those that stay as written are
// warnings. It opens no database and needs no server.
func (c *expandCmd) Run(in io.Reader, e *wiring.Environment) error {
	body, name, err := c.read(in)
	if err != nil {
		return err
	}
	q, err := readAs(body, name, readExpand)
	if err != nil {
		return err
	}
	config, problems := q.facts.Expand(q.config, q.self)
	errs, warnings := macro.Split(problems)
	for _, w := range warnings {
		_, _ = fmt.Fprintln(e.ErrOut, "loom: warning:", w)
	}
	wrong := loom.SettingsCheck{Services: q.services}.Check(config)
	if len(errs)+len(wrong) == 0 {
		return writeAnswer(e.Out, expandYes{config})
	}
	no := expandNo{}
	for _, f := range wrong {
		no.Errors = append(no.Errors, expandError{Code: codeParameter, Message: f.Message, At: strings.TrimPrefix(f.Field, "config.")})
	}
	for _, p := range errs {
		no.Errors = append(no.Errors, expandError{Code: macroCode(p), Message: p.Reason, At: dotted(q.config, p.Pointer), Offset: max(p.Column-1, 0), Macro: p.Macro})
	}
	if err := writeAnswer(e.Out, no); err != nil {
		return err
	}
	return &exitStatus{code: exitNo}
}

func readExpand(r *questionReader) *expandQuestion {
	q := &expandQuestion{self: loom.NodeID(r.o.Text("node")), config: r.o.FreeObject("config")}
	if !r.o.Has("config") {
		r.fail("config", "Set the config to fill, as an object.")
	}
	q.services = r.services(r.o, "services")
	properties := map[loom.NodeID]loom.NodeProperties{}
	for _, n := range readNodes(r.o, nil) {
		properties[n.ID] = n.Properties()
	}
	if _, there := properties[q.self]; q.self != "" && !there {
		r.fail("node", "There is no node %s among nodes.", q.self)
	}
	q.facts = macro.NewFacts(r.o.Object("cluster").Text("owner"), properties)
	return q
}

func macroCode(p macro.Problem) string {
	switch {
	case p.Unknown:
		return codeUnknown
	case p.Severity == macro.Syntax, p.Severity == macro.Limit && p.Macro == "":
		return codeSyntax
	}
	return codeIncomplete
}

// dotted writes the JSON pointer of a value as people write paths: a.b[0].c.
func dotted(document any, pointer string) string {
	var b strings.Builder
	for _, key := range strings.Split(pointer, "/")[1:] {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch v := document.(type) {
		case []any:
			b.WriteString("[" + key + "]")
			if i, err := strconv.Atoi(key); err == nil && i < len(v) {
				document = v[i]
			}
		case map[string]any:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(key)
			document = v[key]
		}
	}
	return b.String()
}
