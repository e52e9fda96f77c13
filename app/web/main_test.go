package web_test

import (
	"testing"

	"loom/app/testkit"
)

// TestMain runs the tests and demands that together they send every form there is.
func TestMain(m *testing.M) { testkit.Main(m, formsNotSent) }
