package loom

import (
	"encoding/json"
	"fmt"
)

// MaxConfig is how large the config of a cluster, a service or a template may be, in
// bytes of its JSON. It is asked when a config is set; what is stored stays readable.
const MaxConfig = 1 << 20

// CheckConfigSize refuses a config above MaxConfig, and one with too many secrets.
func CheckConfigSize(field string, config map[string]any) []FieldError {
	var size byteCount
	e := json.NewEncoder(&size)
	e.SetEscapeHTML(false)
	if err := e.Encode(config); err != nil {
		return nil // what is no JSON is refused by those who store it
	}
	if size--; size <= MaxConfig { // the encoder ends with a newline
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
