package loom

import (
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

// LooksSecret reports whether a key looks like the name of a secret
// (provisioner.md 7). It decides where no schema does, and what is masked in
// logs, audit, previews and events. The setting maxTokenDays only sounds like one.
func LooksSecret(key string) bool { return hasSecretWord(key) && key != "maxTokenDays" }

// MaskSecrets copies a JSON value (maps, slices, scalars) with the values of
// keys that look secret replaced by "[redacted]", at any depth. Empty texts and
// nulls stay, so that one sees that nothing is set.
func MaskSecrets(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if LooksSecret(key) && item != nil && item != "" {
				out[key] = redacted
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
