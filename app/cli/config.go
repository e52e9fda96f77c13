package cli

import (
	"fmt"

	"loom/app/config"
	"loom/app/wiring"
)

type configCmd struct {
	Markdown bool `help:"Print docs/configuration.md instead."`
}

// Run prints the options in force.
func (c *configCmd) Run(e *wiring.Environment) error {
	text := e.Values.Print()
	if c.Markdown {
		text = config.Markdown()
	}
	_, err := fmt.Fprint(e.Out, text)
	return err
}
