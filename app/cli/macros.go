package cli

import (
	"io"

	"loom/app/lenient"
	"loom/app/wiring"
	"loom/planner/macro"
)

type macrosCmd struct {
	Lint macrosLint `cmd:"" help:"Find values of a config, template or service that mean something else than they did for the predecessor."`
}

type macrosLint struct{ document }

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

// Run lists what in a document means something else than for the predecessor.
func (c *macrosLint) Run(in io.Reader, e *wiring.Environment) error {
	body, name, err := c.read(in)
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
	if err := writeAnswer(e.Out, answer); err != nil {
		return err
	}
	if len(answer.Values) > 0 {
		return &exitStatus{code: exitNo}
	}
	return nil
}

// expanded returns the parts of a document in which macros are filled: of a template
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
