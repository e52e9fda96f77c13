package config

import (
	"fmt"
	"strings"
)

// Describe returns the help of an option for a terminal: its meaning, variable and default.
func (o Option) Describe() string {
	text := o.Help + " $" + o.Name
	if o.Default != "" {
		text += " [" + o.Default + "]"
	}
	return text
}

// Markdown is docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n")
	b.WriteString("Generated from the table in `app/config`. Change it there and run `make generate`.\n\n")
	b.WriteString("Every option is an environment variable and a flag of the same name (`LOOM_LISTEN_ADDR`, `--listen-addr`). ")
	b.WriteString("Precedence: flag, environment variable, the file that the variable with `_FILE` appended names, default. ")
	b.WriteString("`PORT` and `DATABASE_URL` count if `LOOM_LISTEN_ADDR` and `LOOM_DATABASE_URL` are not set. ")
	b.WriteString("`loom config` prints the options in force and their sources.\n\n")
	b.WriteString("| variable | type | default | used by | meaning |\n|---|---|---|---|---|\n")
	for _, o := range Options {
		def := "–"
		if o.Default != "" {
			def = "`" + o.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Name, o.Type, def, strings.Join(o.For, ", "), o.Help)
	}
	return b.String()
}
