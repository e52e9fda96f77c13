package catalog

import (
	"loom/app/loom"
)

// skeletons are the documents that the editor of a new entry starts with. They
// lack the name, so that nobody stores one as it is.
var skeletons = map[loom.EntityKind]string{
	loom.KindProvider: `{
  "name": "",
  "label": "",
  "description": "",
  "providertype": "local",
  "provisioner": {
    "internet": true
  }
}`,
	loom.KindHardwareType: `{
  "name": "",
  "label": "",
  "description": "",
  "providermap": {
    "local": {
      "flavor": "mem=256m,pids=256,cpu=100"
    }
  }
}`,
	loom.KindImageType: `{
  "name": "",
  "label": "",
  "description": "",
  "providermap": {
    "local": {
      "image": "bookworm"
    }
  }
}`,
	loom.KindService: `{
  "name": "",
  "label": "",
  "description": "",
  "dependencies": {
    "provides": [],
    "conflicts": [],
    "install": {"requires": [], "uses": []},
    "runtime": {"requires": [], "uses": []}
  },
  "provisioner": {
    "actions": {
      "install": {"type": "shell", "fields": {"script": "", "args": "install"}},
      "configure": {"type": "shell", "fields": {"script": "", "args": "configure"}},
      "start": {"type": "shell", "fields": {"script": "", "args": "start"}},
      "stop": {"type": "shell", "fields": {"script": "", "args": "stop"}}
    }
  },
  "links": []
}`,
	loom.KindTemplate: `{
  "name": "",
  "label": "",
  "description": "",
  "defaults": {
    "services": [],
    "provider": "local",
    "hardwaretype": "",
    "imagetype": "",
    "config": {}
  },
  "compatibility": {
    "hardwaretypes": [],
    "imagetypes": [],
    "services": []
  },
  "constraints": {
    "size": {"min": 1, "max": 10},
    "layout": {"mustcoexist": [], "cantcoexist": []},
    "services": {}
  },
  "administration": {
    "leaseduration": {"initial": 0, "max": 0, "step": 0}
  },
  "links": []
}`,
	loom.KindPartialTemplate: `{
  "name": "",
  "label": "",
  "description": "",
  "defaults": {
    "services": [],
    "config": {}
  },
  "immutable": false
}`,
}
