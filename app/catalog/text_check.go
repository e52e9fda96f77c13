package catalog

import (
	"errors"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"loom/app/loom"
)

// languages are those of texts by the ending of a file's name, or by its name.
var languages = map[string]string{
	".sh": "bash", ".bash": "bash", ".ksh": "bash", ".py": "python", ".json": "json", ".rb": "ruby", ".pp": "puppet",
	".ini": "ini", ".conf": "ini", ".cfg": "ini", ".toml": "ini", ".properties": "ini", ".dockerfile": "dockerfile", "dockerfile": "dockerfile",
}

// interpreters are the languages of scripts by the program in their first line, without its
// version.
var interpreters = map[string]string{"sh": "bash", "dash": "bash", "bash": "bash", "ksh": "bash", "python": "python", "ruby": "ruby"}

// CheckText tells the language of a text file from its first line, else from its name, and
// parses it if that is a shell's.
func CheckText(name, text string) loom.TextCheck {
	program, language := "sh", languages[strings.ToLower(path.Ext(name))]
	if language == "" {
		language = languages[strings.ToLower(name)]
	}
	if line, is := strings.CutPrefix(text, "#!"); is {
		line, _, _ = strings.Cut(line, "\n")
		language = ""
		if words := strings.Fields(line); len(words) > 0 {
			program = path.Base(words[0])
			if program == "env" && len(words) > 1 {
				program = words[len(words)-1]
			}
			program = strings.TrimRight(program, "0123456789.")
			language = interpreters[program]
		}
	}
	check := loom.TextCheck{Language: language, Checked: language == "bash"}
	if !check.Checked {
		return check
	}
	variant := map[string]syntax.LangVariant{"bash": syntax.LangBash, "ksh": syntax.LangMirBSDKorn}[program]
	if program == "sh" || program == "dash" {
		variant = syntax.LangPOSIX
	}
	_, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
	var parse syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(err, &parse):
		check.Problem, check.Line, check.Column = parse.Text, int(parse.Pos.Line()), int(parse.Pos.Col())
	case errors.As(err, &foreign):
		check.Problem, check.Line, check.Column = strings.TrimPrefix(err.Error(), foreign.Pos.String()+": "), int(foreign.Pos.Line()), int(foreign.Pos.Col())
	}
	check.Problem = quoted(check.Problem)
	return check
}

// quoted writes words between backquotes as people do.
func quoted(text string) string {
	parts := strings.Split(text, "`")
	for i := 1; i+1 < len(parts); i += 2 {
		parts[i] = "“" + parts[i] + "”"
	}
	return strings.Join(parts, "")
}
