CREATE TABLE whosin_ledger (
	kind VARCHAR(32) NOT NULL, 
	version INTEGER NOT NULL, 
	PRIMARY KEY (kind)
);
INSERT INTO "whosin_ledger" VALUES('whosin ledger',1);
CREATE TABLE whosin_datasets (
	name VARCHAR(200) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	relation VARCHAR(16) NOT NULL, 
	alone INTEGER NOT NULL, 
	epsilon BIGINT NOT NULL, 
	rho BIGINT NOT NULL, 
	delta BIGINT NOT NULL, 
	spent_epsilon BIGINT NOT NULL, 
	spent_rho BIGINT NOT NULL, 
	spent_delta BIGINT NOT NULL, 
	debits INTEGER NOT NULL, 
	entries INTEGER NOT NULL, 
	head VARCHAR(64) NOT NULL, 
	last VARCHAR(32) NOT NULL, 
	"plan" TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "whosin_datasets" VALUES('hospital','open','add-remove',0,405465108108,0,0,200000000000,10000000000,0,2,4,'cef9fd5723b49dcb5521159136d5364ce3d9249d31d8f393b6936dcd80408feb','2026-11-16T09:00:39.217683Z','{"baseline_epsilon":null,"composes":true,"delta":0.0,"dp_delta":0.0,"entities":null,"epsilon":0.4054651081081643,"fallback":[{"family":"D_I","gamma":1.5,"theorem":"T12","words":"any beliefs, everyone else known"},{"family":"D_B","gamma":2.2499999999999996,"theorem":"T12","words":"any beliefs, and the size known"},{"family":"D_U","gamma":"inf","theorem":"T3","words":"anything, such as that all are in or none"}],"family":{"high":"0.5","low":"0.05","name":"independent"},"gamma":1.4634146341463417,"noise":null,"query":null,"relation":"add-remove","target":{"name":"posterior","posterior":"0.6"},"theorems":["T4","T11","T12"],"tight":true,"version":1}');
INSERT INTO "whosin_datasets" VALUES('closed','closed','add-remove',0,1000000000000,0,0,100000000000,5000000000,0,1,4,'c388a82c029c91818fd275bb0da7748041f18a26c75c7dc99ec0e1c19a2256cb','2026-11-16T09:00:39.249664Z','{"baseline_epsilon":1.0,"composes":true,"delta":0.0,"dp_delta":0.0,"entities":null,"epsilon":1.0,"fallback":[{"family":"D_I","gamma":2.7182818284590455,"theorem":"T12","words":"any beliefs, everyone else known"},{"family":"D_B","gamma":7.38905609893065,"theorem":"T12","words":"any beliefs, and the size known"},{"family":"D_U","gamma":"inf","theorem":"T3","words":"anything, such as that all are in or none"}],"family":{"high":1,"low":0,"name":"independent"},"gamma":2.7182818284590455,"noise":null,"query":null,"relation":"add-remove","target":{"epsilon":1,"name":"epsilon"},"theorems":["T4","T12"],"tight":true,"version":1}');
INSERT INTO "whosin_datasets" VALUES('Ärzte 😀','open','add-remove',0,962291339740,16653082626,9251635402,4611686018427387904,200000000,0,1,2,'52eba2c1f23443cd45b74f934b5366e5d7f9d12de6c068d7889f5a1c7a53a269','2026-11-16T09:00:39.256122Z','{"baseline_epsilon":1.0,"composes":true,"delta":1e-06,"dp_delta":3.700654160888466e-08,"entities":null,"epsilon":0.9622913397400654,"fallback":[{"family":"D_I","gamma":2.718281828459045,"theorem":"T18","words":"any beliefs, everyone else known"},{"family":"D_B","gamma":"inf","theorem":"T18","words":"any beliefs, and the size known"},{"family":"D_U","gamma":"inf","theorem":"T3","words":"anything, such as that all are in or none"}],"family":{"high":1,"low":0,"name":"independent"},"gamma":2.7182818284590455,"noise":null,"query":null,"relation":"add-remove","target":{"epsilon":1,"name":"epsilon"},"theorems":["T4","T18","T12"],"tight":false,"version":1}');
CREATE TABLE whosin_entries (
	dataset VARCHAR(200) NOT NULL, 
	number INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	request VARCHAR(200), 
	body TEXT NOT NULL, 
	head VARCHAR(64) NOT NULL, 
	PRIMARY KEY (dataset, number), 
	CONSTRAINT whosin_once UNIQUE (dataset, request, kind), 
	FOREIGN KEY(dataset) REFERENCES whosin_datasets (name)
);
INSERT INTO "whosin_entries" VALUES('hospital',1,'registered',NULL,'{"budget":{"alone":false,"delta":0,"epsilon":405465108108,"relation":"add-remove","rho":0},"plan":{"baseline_epsilon":null,"composes":true,"delta":0.0,"dp_delta":0.0,"entities":null,"epsilon":0.4054651081081643,"fallback":[{"family":"D_I","gamma":1.5,"theorem":"T12","words":"any beliefs, everyone else known"},{"family":"D_B","gamma":2.2499999999999996,"theorem":"T12","words":"any beliefs, and the size known"},{"family":"D_U","gamma":"inf","theorem":"T3","words":"anything, such as that all are in or none"}],"family":{"high":"0.5","low":"0.05","name":"independent"},"gamma":1.4634146341463417,"noise":null,"query":null,"relation":"add-remove","target":{"name":"posterior","posterior":"0.6"},"theorems":["T4","T11","T12"],"tight":true,"version":1},"when":"2026-11-16T09:00:38.125271Z","who":"ann"}','170e404497d94361b8aec39cd1c85d4f5685c58f325030b7c1368f7f0ce8e196');
INSERT INTO "whosin_entries" VALUES('closed',1,'registered',NULL,'{"budget":{"alone":false,"delta":0,"epsilon":1000000000000,"relation":"add-remove","rho":0},"plan":{"baseline_epsilon":1.0,"composes":true,"delta":0.0,"dp_delta":0.0,"entities":null,"epsilon":1.0,"fallback":[{"family":"D_I","gamma":2.7182818284590455,"theorem":"T12","words":"any beliefs, everyone else known"},{"family":"D_B","gamma":7.38905609893065,"theorem":"T12","words":"any beliefs, and the size known"},{"family":"D_U","gamma":"inf","theorem":"T3","words":"anything, such as that all are in or none"}],"family":{"high":1,"low":0,"name":"independent"},"gamma":2.7182818284590455,"noise":null,"query":null,"relation":"add-remove","target":{"epsilon":1,"name":"epsilon"},"theorems":["T4","T12"],"tight":true,"version":1},"when":"2026-11-16T09:00:38.154004Z","who":"ann"}','615edb80b937b3d0f9db9a7d84c963424dba8767d5dc09c0476694f9e33c23e1');
INSERT INTO "whosin_entries" VALUES('Ärzte 😀',1,'registered',NULL,'{"budget":{"alone":false,"delta":9251635402,"epsilon":962291339740,"relation":"add-remove","rho":16653082626},"plan":{"baseline_epsilon":1.0,"composes":true,"delta":1e-06,"dp_delta":3.700654160888466e-08,"entities":null,"epsilon":0.9622913397400654,"fallback":[{"family":"D_I","gamma":2.718281828459045,"theorem":"T18","words":"any beliefs, everyone else known"},{"family":"D_B","gamma":"inf","theorem":"T18","words":"any beliefs, and the size known"},{"family":"D_U","gamma":"inf","theorem":"T3","words":"anything, such as that all are in or none"}],"family":{"high":1,"low":0,"name":"independent"},"gamma":2.7182818284590455,"noise":null,"query":null,"relation":"add-remove","target":{"epsilon":1,"name":"epsilon"},"theorems":["T4","T18","T12"],"tight":false,"version":1},"when":"2026-11-16T09:00:39.159541Z","who":"ann"}','3a51e76f97ce8af3fc83c4a7dd66a18718646781e83a3a2fe57d9bd810f3769f');
INSERT INTO "whosin_entries" VALUES('hospital',2,'debit','first','{"alone":false,"costs":{"add-remove":{"delta":0,"epsilon":100000000000,"rho":5000000000}},"guarantee":"differential privacy","what":{"query":"count"},"when":"2026-11-16T09:00:39.188673Z","who":"ann"}','9bc1119da96f1f7d992dba6d0cff8fb322feb3bae7247a30ab4c7950555ae3f1');
INSERT INTO "whosin_entries" VALUES('hospital',3,'answer','first','{"digest":"dc60e632a90329ccfd34fbe904d94704dbbb6669575185e26389854ff64139c3","when":"2026-11-16T09:00:39.214146Z","who":"ann"}','9dfedd13729818318117fb8dd8406b111fe57e9e8596be1130796089147e49f1');
INSERT INTO "whosin_entries" VALUES('hospital',4,'debit','unanswered','{"alone":false,"costs":{"add-remove":{"delta":0,"epsilon":100000000000,"rho":5000000000}},"guarantee":"differential privacy","what":{"query":"count"},"when":"2026-11-16T09:00:39.217683Z","who":"ann"}','cef9fd5723b49dcb5521159136d5364ce3d9249d31d8f393b6936dcd80408feb');
INSERT INTO "whosin_entries" VALUES('closed',2,'debit','only','{"alone":false,"costs":{"add-remove":{"delta":0,"epsilon":100000000000,"rho":5000000000}},"guarantee":"differential privacy","what":{"query":"count"},"when":"2026-11-16T09:00:39.218647Z","who":"ann"}','b947f526ff92b4072f21fa342abeb11e336711d3224cd000e1a515ea139e8256');
INSERT INTO "whosin_entries" VALUES('closed',3,'answer','only','{"digest":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b","when":"2026-11-16T09:00:39.237696Z","who":"ann"}','1a346bdc8ac40b851634d60cc7b343cdf963de5e8e0c23447f1fdfd386f4e541');
INSERT INTO "whosin_entries" VALUES('closed',4,'closed',NULL,'{"when":"2026-11-16T09:00:39.249664Z","who":"ann"}','c388a82c029c91818fd275bb0da7748041f18a26c75c7dc99ec0e1c19a2256cb');
INSERT INTO "whosin_entries" VALUES('Ärzte 😀',2,'debit','né','{"alone":false,"costs":{"add-remove":{"delta":0,"epsilon":4611686018427387904,"rho":200000000}},"guarantee":"differential privacy","what":{"query":"sum"},"when":"2026-11-16T09:00:39.256122Z","who":"ann"}','52eba2c1f23443cd45b74f934b5366e5d7f9d12de6c068d7889f5a1c7a53a269');
CREATE TABLE whosin_answers (
	dataset VARCHAR(200) NOT NULL, 
	request VARCHAR(200) NOT NULL, 
	answer TEXT NOT NULL, 
	PRIMARY KEY (dataset, request), 
	FOREIGN KEY(dataset) REFERENCES whosin_datasets (name)
);
INSERT INTO "whosin_answers" VALUES('hospital','first','{"value":42}');
INSERT INTO "whosin_answers" VALUES('closed','only','1');
