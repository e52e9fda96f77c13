package loom

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EntityKinds are all eight kinds.
var EntityKinds = append(append([]EntityKind{}, TenantKinds...), KindProviderType, KindAutomatorType)

// Valid reports whether the kind is one of the eight.
func (k EntityKind) Valid() bool { return NewEntry(k) != nil }

// Global reports whether entries of the kind belong to SuperTenant and are read
// by everyone.
func (k EntityKind) Global() bool { return k == KindProviderType || k == KindAutomatorType }

// NewEntry makes an empty entry of a kind, or nil for an unknown kind.
func NewEntry(k EntityKind) Entry {
	switch k {
	case KindProvider:
		return &Provider{}
	case KindHardwareType:
		return &HardwareType{}
	case KindImageType:
		return &ImageType{}
	case KindService:
		return &Service{}
	case KindTemplate:
		return &Template{}
	case KindPartialTemplate:
		return &PartialTemplate{}
	case KindProviderType, KindAutomatorType:
		return &PluginType{}
	}
	return nil
}

// ReadEntry reads the stored form of an entry, numbers as they were written.
// What people and programs send goes through catalog.Decode instead.
func ReadEntry(k EntityKind, body []byte) (Entry, error) {
	entry := NewEntry(k)
	if entry == nil {
		return nil, NewError(Invalid, "There is no catalog kind “%s”.", k)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(entry); err != nil {
		return nil, fmt.Errorf("read a stored %s: %w", k.Word(), err)
	}
	return entry, nil
}
