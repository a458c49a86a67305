lens.recordings([
{"about":"A Deployment is created, scaled and deleted. No request asks for it.","file":"02-informer.js","title":"An informer's cache follows the API server"},
{"about":"A Deployment that is deleted stays away. A create that fails is lost.","file":"03-foo.js","title":"A handler that creates the Deployment itself"},
{"about":"A create that fails is tried again. Many keys wait for few workers.","file":"04-queue.js","title":"A queue between handlers and workers"},
{"about":"A Deployment that somebody deletes or scales is repaired.","file":"05-owning.js","title":"Two watches lead to one key"},
{"about":"The Foo moves to a new Deployment, and another Foo waits for a name that is taken.","file":"06-renaming.js","title":"A Deployment of another name"},
{"about":"Each Pod that becomes available is a watch event, a sync and a status.","file":"07-status.js","title":"The status follows the Deployment"},
{"about":"The status says why there is no Deployment, and the Foo is tried again.","file":"08-errors.js","title":"What the API server refuses"},
{"about":"A Foo is created, scaled, renamed and deleted.","file":"create.js","title":"From kubectl create to Ready"},
{"about":"The cache does not show the controller's own write, so the next sync waits for it.","file":"hold.js","title":"A watch is late"},
{"about":"Its cache and its queue are made anew, and nothing is written.","file":"restart.js","title":"The controller is killed and started again"},
{"about":"One Foo has the Deployment that another one names, and takes it over when the first goes.","file":"taken.js","title":"The name is taken"}
]);
