// Made-up reports for the screenshots of the guide, some with annotations.

import { pubtator } from '../mock/samples.mjs';

export const stories = [
  pubtator('W-101', 'Famotidine and sudden delirium: what six patients saw.', 'Six patients took famotidine and showed confusion within two days. Delirium ended when famotidine was stopped; headaches stayed in one of them. Warfarin had no part in it.', [
    ['delirium', 'Disease', 'MESH:D003693'],
    ['Famotidine', 'Chemical', 'MESH:D015738'],
  ]),
  pubtator('W-102', 'Type 2 diabetes and chronic kidney disease in two sisters', 'Two sisters with type 2 diabetes, anaemia and chronic kidney disease (CKD) took ibuprofen for headaches; the CKD grew worse. Neither had high blood pressure.', [
    ['chronic kidney disease', 'Disease', 'MESH:D051436'],
    ['Type 2 diabetes', 'Disease', 'MESH:D003924'],
  ]),
  pubtator('W-103', 'Breast and lung cancer after a long fever', 'Breast and lung cancer were found in a woman with fever and a cough that no drug could stop. A rare glimmer syndrome was considered. She took aspirin against the pain.', [
    ['lung cancer', 'Disease', 'MESH:D008175'],
    ['glimmer syndrome', 'Disease', '-1'],
  ]),
  pubtator('W-104', 'Wheezing in a baker who changed his flour', 'A baker began to cough whenever he opened the new flour. Asthma was suspected; salbutamol helped within minutes, and at home he had no symptoms. He also took metformin for diabetes.', []),
  pubtator('W-105', 'Night sweats on a quiet ward', 'She came with fever and night sweats. Tuberculosis was feared and not found. Pneumonia was seen on the third day; after amoxicillin the fever fell, but a rash and nausea followed.', []),
  pubtator('W-106', 'A fall, a fracture, and a forgotten tablet', 'After his stroke he took warfarin, and aspirin against advice. A hip fracture bled for two days. Hypertension and atrial fibrillation had been known for years; dementia had not.', []),
].join('\n');
