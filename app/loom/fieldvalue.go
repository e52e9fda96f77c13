package loom

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// CheckValue gives the sentence that says which values a plugin's field takes, or
// "" when value is one of them. No value, and an empty text, always are; numbers
// may be texts. The sentence does not repeat the value, which
// may be a secret.
func (f FieldSchema) CheckValue(value any) string {
	text := FieldText(value)
	if value == nil || text == "" {
		return ""
	}
	switch f.Type {
	case "select":
		if len(f.Options) > 0 && !slices.Contains(f.Options, text) {
			return "Choose one of " + strings.Join(f.Options, ", ") + "."
		}
	case "checkbox":
		if !slices.Contains([]string{"true", "false", "on"}, text) {
			return "It takes true or false."
		}
	}
	if f.Type == "number" || f.Min != nil || f.Max != nil {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || f.Min != nil && !(n >= *f.Min) || f.Max != nil && !(n <= *f.Max) {
			return "It takes " + f.numbers() + "."
		}
	}
	if f.Pattern != "" {
		// A pattern of a plugin that Go cannot read says nothing about any value.
		if rule, err := regexp.Compile(`^(?:` + f.Pattern + `)$`); err == nil && !rule.MatchString(text) {
			return "It takes texts of the form " + f.Pattern + "."
		}
	}
	return ""
}

// CheckFormat gives the sentence that says what a text in a field with a format has to
// be, or "" when value is that or nothing. plain allows addresses without HTTPS, for
// installations whose operator does.
func (f FieldSchema) CheckFormat(value any, plain bool) string {
	text := strings.TrimSpace(FieldText(value))
	if text == "" {
		return ""
	}
	switch f.Format {
	case FormatURL:
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			return "Enter a URL such as https://cloud.example."
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return "Enter host and path only, without user, question mark and what follows."
		case u.Scheme == "http" && !plain:
			return "Use https://. Over plain HTTP, anyone on the way can read the credentials."
		}
	case FormatPEM:
		for rest := []byte(text); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return "Enter certificates in PEM form, beginning with -----BEGIN CERTIFICATE-----."
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
				return "Enter certificates only: one of the blocks is none that can be read."
			}
			if strings.TrimSpace(string(rest)) == "" {
				return ""
			}
		}
	}
	return ""
}

func (f FieldSchema) numbers() string {
	switch {
	case f.Min != nil && f.Max != nil:
		return fmt.Sprintf("numbers from %g to %g", *f.Min, *f.Max)
	case f.Min != nil:
		return fmt.Sprintf("numbers from %g", *f.Min)
	case f.Max != nil:
		return fmt.Sprintf("numbers up to %g", *f.Max)
	}
	return "numbers"
}

// FieldText writes a value of a plugin's field as a text: texts and numbers as
// they are, anything else as JSON. "" for nil.
func FieldText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return JSONText(value)
}

// JSONText writes a value as people read JSON: on one line, with <, > and & as they are.
func JSONText(value any) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
