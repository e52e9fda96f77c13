package clusters

import (
	"strings"
	"testing"

	"loom/app/web/page"
)

// TestConfigOfAFormIsNotTooDeep: a config may be as deep as a request of the API lets it
// be, which has it as a member.
func TestConfigOfAFormIsNotTooDeep(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	if config, message := parseConfig(nested(99)); message != "" || config["a"] == nil {
		t.Errorf("99 levels: %q", message)
	}
	for _, depth := range []int{100, 9000} {
		if config, message := parseConfig(nested(depth)); config != nil || !strings.Contains(message, "more than 100 levels deep") {
			t.Errorf("%d levels: %q", depth, message)
		}
	}
	if page.ParseTree([]byte(nested(101))) != nil {
		t.Error("a document of 101 levels is compared")
	}
}
