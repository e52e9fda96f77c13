package store_test

import (
	"testing"

	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
