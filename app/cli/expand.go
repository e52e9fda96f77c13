package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"loom/app/lenient"
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
)

// expandQuestion is what loom expand has read.
type expandQuestion struct {
	facts  *macro.Facts
	self   loom.NodeID
	config map[string]any
}

// runExpand fills the macros of a config for a node. It opens no database and
// needs no server.
func runExpand(_ context.Context, e *environment, args []string) error {
	return expandCommand(os.Stdin, e.Out, e.ErrOut, args)
}

// expandCommand answers on out; macros that stay as written are told on errOut.
func expandCommand(in io.Reader, out, errOut io.Writer, args []string) error {
	body, name, err := readDocument(in, "expand", args)
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
		_, _ = fmt.Fprintln(errOut, "loom: warning:", w)
	}
	if len(errs) == 0 {
		return writeAnswer(out, expandYes{config})
	}
	no := expandNo{}
	for _, p := range errs {
		no.Errors = append(no.Errors, expandError{Code: macroCode(p), Message: p.Reason, At: dotted(q.config, p.Pointer), Offset: max(p.Column-1, 0), Macro: p.Macro})
	}
	if err := writeAnswer(out, no); err != nil {
		return err
	}
	return &exitStatus{code: exitNo}
}

func readExpand(r *questionReader) *expandQuestion {
	q := &expandQuestion{self: loom.NodeID(r.o.Text("node")), config: r.o.FreeObject("config")}
	if !r.o.Has("config") {
		r.fail("config", "Give the config to fill, as an object.")
	}
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

// runMacros lists what in a document means something else than for the predecessor.
func runMacros(_ context.Context, e *environment, args []string) error {
	return lintCommand(os.Stdin, e.Out, args)
}

type lintAnswer struct {
	Values []lintValue `json:"values"`
}

// lintValue is a part of a value; At and Offset are as in expandError.
type lintValue struct {
	At          string `json:"at"`
	Offset      int    `json:"offset"`
	Text        string `json:"text"`
	Predecessor string `json:"predecessor"`
	Loom        string `json:"loom"`
}

func lintCommand(in io.Reader, out io.Writer, args []string) error {
	if len(args) == 0 || args[0] != "lint" {
		return wiring.UsageError("say `loom macros lint [FILE]`")
	}
	body, name, err := readDocument(in, "macros lint", args[1:])
	if err != nil {
		return err
	}
	document, err := readAs(body, name, func(r *questionReader) map[string]any { return expanded(r.o) })
	if err != nil {
		return err
	}
	answer := lintAnswer{Values: []lintValue{}}
	for _, f := range macro.Lint(document) {
		answer.Values = append(answer.Values, lintValue{dotted(document, f.Pointer), f.Column - 1, f.Text, f.Before, f.Now})
	}
	if err := writeAnswer(out, answer); err != nil {
		return err
	}
	if len(answer.Values) > 0 {
		return &exitStatus{code: exitNo}
	}
	return nil
}

// expanded gives the parts of a document in which macros are filled: of a template
// its config and links, of a service its links and config, of anything else all.
func expanded(o *lenient.Object) map[string]any {
	document := map[string]any{}
	take := func(name string) {
		if v := o.Free(name); v != nil {
			document[name] = v
		}
	}
	_, template := o.Free("defaults").(map[string]any)
	_, service := o.Free("provisioner").(map[string]any)
	switch {
	case template:
		take("links")
		defaults := o.Object("defaults")
		kept := map[string]any{}
		for _, name := range []string{"config", "services"} {
			if v := defaults.Free(name); v != nil {
				kept[name] = v
			}
		}
		document["defaults"] = kept
	case service:
		take("links")
		take("defaultConfig")
	default:
		for _, name := range o.Names() {
			take(name)
		}
	}
	return document
}
