package loom

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// secretWords are parts of keys that hold secrets; keys of every task are looked at.
var secretWords = []string{"password", "passwd", "secret", "token", "private_key", "api_key"}

// hasSecretWord reports whether a key has one of secretWords in it, in any case.
func hasSecretWord(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

// LooksSecret reports whether a key looks like the name of a secret. It decides where no schema does, and what is masked in
// logs, audit, previews and events. The setting maxTokenDays only sounds like one.
func LooksSecret(key string) bool { return hasSecretWord(key) && key != "maxTokenDays" }

// Limits of the texts that somebody's config or service hides in the logs of a task: each
// is looked for in each line, in several forms. Shorter ones would hide half of every text.
const (
	maxHiddenTexts = 1000
	maxHiddenBytes = 64 << 10
	minHiddenText  = 8
)

// HiddenTexts gives the texts of a JSON value that logs do not show: those below keys that
// look secret, or with all every text. Lines of a text count as texts. It ends at the limits,
// and over names the key that went beyond them.
func HiddenTexts(value any, all bool) (texts []string, over string) {
	h := hiddenTexts{}
	h.walk(value, all)
	return h.texts, h.over
}

type hiddenTexts struct {
	at          JSONPath
	texts       []string
	count, size int
	over        string
}

func (h *hiddenTexts) walk(value any, secret bool) {
	if h.over != "" {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) { // the same ones each time
			h.at.Key(key)
			h.walk(v[key], secret || LooksSecret(key))
			h.at.Up()
		}
	case []any:
		for _, item := range v {
			h.walk(item, secret)
		}
	case string:
		h.add(v, secret)
	case json.Number:
		h.add(v.String(), secret)
	}
}

func (h *hiddenTexts) add(text string, secret bool) {
	if !secret || len(text) < minHiddenText {
		return
	}
	h.count += 1 + strings.Count(text, "\n")
	h.size += len(text)
	if h.count > maxHiddenTexts || h.size > maxHiddenBytes {
		h.over = h.at.Keys()
		return
	}
	h.texts = append(h.texts, text)
}

// checkHidden refuses a config with more secrets than tasks can hide in their logs.
func checkHidden(field string, config map[string]any) []FieldError {
	_, over := HiddenTexts(config, false)
	if over == "" {
		return nil
	}
	return []FieldError{{field, fmt.Sprintf("With “%.100s” the config has more than %d texts, or more than %d bytes, below keys that look secret, such as “token”. "+
		"Take some out, for example into a plugin resource, or name the key otherwise.", over, maxHiddenTexts, maxHiddenBytes)}}
}

// MaskSecrets copies a JSON value (maps, slices, scalars) with the values of
// keys that look secret replaced by "[redacted]", at any depth. Empty texts and
// nulls stay, so that one sees that nothing is set.
func MaskSecrets(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if LooksSecret(key) && item != nil && item != "" {
				out[key] = Redacted
				continue
			}
			out[key] = MaskSecrets(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = MaskSecrets(item)
		}
		return out
	}
	return value
}
