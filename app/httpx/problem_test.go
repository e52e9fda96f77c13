package httpx

import (
	"testing"

	"loom/app/loom"
)

func TestEveryKindHasItsAnswer(t *testing.T) {
	t.Parallel()
	for _, k := range loom.Kinds {
		if apiStatus[k] < 400 || pageStatus[k] < 400 || titles[k] == "" {
			t.Errorf("%s: API %d, page %d, title %q", k, apiStatus[k], pageStatus[k], titles[k])
		}
	}
	if len(apiStatus) != len(loom.Kinds) || len(pageStatus) != len(loom.Kinds) || len(titles) != len(loom.Kinds) {
		t.Error("a table knows a kind that is not one")
	}
}
