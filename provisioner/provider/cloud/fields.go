package cloud

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"loom/app/loom"
)

// Fields are the fields of a provider as plugins get them: empty text is absent.
type Fields map[string]any

// Text returns a field as text, "" where it is absent.
func (f Fields) Text(name string) string {
	switch v := f[name].(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatInt(int64(v), 10)
		}
		return fmt.Sprint(v)
	case map[string]any, []any:
		return ""
	default:
		return strings.TrimSpace(fmt.Sprint(v))
	}
}

// Switch returns a checkbox, or usual where it is absent.
func (f Fields) Switch(name string, usual bool) bool {
	if f.Text(name) == "" {
		return usual
	}
	return loom.SwitchedOn(f[name])
}

// List returns a comma-separated field, blanks trimmed and empty entries left out. A
// list of JSON is taken as well.
func (f Fields) List(name string) []string {
	var words []string
	if list, ok := f[name].([]any); ok {
		for _, word := range list {
			words = append(words, fmt.Sprint(word))
		}
	} else {
		words = strings.Split(f.Text(name), ",")
	}
	var kept []string
	for _, word := range words {
		if word = strings.TrimSpace(word); word != "" {
			kept = append(kept, word)
		}
	}
	return kept
}

// Number returns a whole number between 0 and most, or usual where the field is
// absent. Anything else is an error of kind Refused that names the field.
func (f Fields) Number(name string, usual, most int) (int, error) {
	text := f.Text(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, Errorf(Refused, "provider field %s is %.50q; give a whole number up to %d", name, text, most)
	}
	return n, nil
}

// Auth is how to log in to a machine, as the result of CREATE tells it: as the
// provider's own ssh_user, else the image's user, with the key of the field
// ssh_key_resource and, where the cloud made one up, a password.
func Auth(spec *loom.TaskSpec, password string) map[string]any {
	fields := Fields(spec.Provider.Fields)
	auth := map[string]any{"user": loom.DefaultSSHUser}
	for _, user := range []string{fields.Text("ssh_user"), spec.SSHUser} {
		if user != "" {
			auth["user"] = user
			break
		}
	}
	// Old providers hold the whole path of another installation.
	if key := fields.Text("ssh_key_resource"); key != "" {
		auth["identityfile"] = "ssh_keys/" + path.Base(key)
	}
	if password != "" {
		auth["password"] = password
	}
	return auth
}

// Needs reports a flavor or an image that the catalog does not name for this
// provider, as an error of kind Refused.
func Needs(spec *loom.TaskSpec) error {
	switch {
	case spec.Flavor == "":
		return Errorf(Refused, "hardware type “%s” names no flavor for provider “%s”; add one to it", spec.HardwareType, spec.Provider.Name)
	case spec.Image == "":
		return Errorf(Refused, "image type “%s” names no image for provider “%s”; add one to it", spec.ImageType, spec.Provider.Name)
	}
	return nil
}
