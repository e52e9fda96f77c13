package loom

import (
	"encoding/json"
	"fmt"
	"strings"
)

// MaxConfig is how large the config of a cluster, a service or a template may be, in
// bytes of its JSON. It is asked when a config is set; what is stored stays readable.
const MaxConfig = 1 << 20

// How long the names in a config may be, in bytes: one key, and the JSON pointer of a
// value. Each value is named by its pointer wherever something is said of it.
const (
	MaxConfigKey  = 255
	MaxConfigPath = 1000
)

// CheckConfigSize refuses a config above MaxConfig, one with keys or paths that are too
// long, and one with too many secrets.
func CheckConfigSize(field string, config map[string]any) []FieldError {
	var size byteCount
	e := json.NewEncoder(&size)
	e.SetEscapeHTML(false)
	if err := e.Encode(config); err != nil {
		return nil // what is no JSON is refused by those who store it
	}
	if size--; size <= MaxConfig { // the encoder ends with a newline
		if long := checkPaths(config, &JSONPath{}, 0); long != "" {
			return []FieldError{{field, long}}
		}
		return checkHidden(field, config)
	}
	return []FieldError{{field, fmt.Sprintf("The config is %d bytes of JSON; at most %d are allowed. Take large texts out, for example into a plugin resource.", size, MaxConfig)}}
}

// byteCount counts what is written to it.
type byteCount int

func (c *byteCount) Write(p []byte) (int, error) {
	*c += byteCount(len(p))
	return len(p), nil
}

// checkPaths says what is wrong with the first key or path that is too long, "" for none.
// length is that of the path.
func checkPaths(value any, path *JSONPath, length int) (wrong string) {
	if length > MaxConfigPath {
		return fmt.Sprintf("The path “%s” in the config has %d bytes; at most %d are allowed, with a sign before each key and index. Use shorter keys, or fewer levels.",
			Cut(path.Pointer(), 200), length, MaxConfigPath)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if len(key) > MaxConfigKey {
				return fmt.Sprintf("The key “%s” in the config has %d bytes; at most %d are allowed. Put long texts into values.", Cut(key, 100), len(key), MaxConfigKey)
			}
			path.Key(key)
			wrong = checkPaths(v[key], path, length+1+len(key)+strings.Count(key, "~")+strings.Count(key, "/"))
			path.Up()
			if wrong != "" {
				return wrong
			}
		}
	case []any:
		for i, item := range v {
			path.Index(i)
			wrong = checkPaths(item, path, length+1+len(itoa(i)))
			path.Up()
			if wrong != "" {
				return wrong
			}
		}
	}
	return ""
}
